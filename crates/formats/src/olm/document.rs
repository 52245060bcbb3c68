//! The documents of a catalog, one after the other: JSON values in a row, or YAML documents. After one that cannot be read, reading
//! goes on with the next.
//!
//! Here are the keys that mu reads of them, too.

use crate::node::{Fault, FormatError, Kind, Node, PEOPLE};
use crate::reader;
use crate::shape::Shape::{self, List, Map, Noted, Open, Text, Typed, Unused};
use crate::shape::{SHOWN, TEXTS, Unknown, Values};

/// A document of a catalog: one of a package, a channel, a bundle or deprecations. Those with other schemas may have any keys.
pub(super) static DOCUMENT: Shape = Map(&[
    ("schema", Text),
    ("name", Text),
    ("package", Text),
    ("defaultChannel", Text),
    ("image", Text),
    ("icon", Unused),
    ("description", Unused),
    ("relatedImages", Unused),
    (
        "entries",
        List(&Map(&[
            ("name", Text),
            ("replaces", Text),
            ("skips", TEXTS),
            ("skipRange", Text),
            // Of deprecations.
            ("reference", Map(&[("schema", Text), ("name", Text)])),
            ("message", Text),
        ])),
    ),
    ("properties", PROPERTIES),
]);

/// The properties of a bundle.
pub(super) const PROPERTIES: Shape =
    List(&Typed(TYPES, &[("type", Text), ("value", Shape::As(&PROPERTY))]));

/// The types of properties whose keys are known. Authors have types of their own.
const TYPES: &[&str] = &[
    "olm.package",
    "olm.package.required",
    "olm.gvk",
    "olm.gvk.required",
    "olm.constraint",
    "olm.channel",
    "olm.bundle.object",
    "olm.csv.metadata",
];

/// The value of a property. Its type says which of the keys count.
static PROPERTY: Shape = Map(&[
    ("packageName", Text),
    ("version", Text),
    ("versionRange", Text),
    ("release", Text),
    ("group", Text),
    ("kind", Text),
    // A constraint.
    ("failureMessage", Text),
    ("all", Map(&[("constraints", List(&PROPERTY))])),
    ("any", Text),
    ("not", Text),
    ("none", Text),
    ("cel", Text),
    ("gvk", Map(&[("group", Text), ("version", Text), ("kind", Text)])),
    ("package", Map(&[("packageName", Text), ("version", Text), ("versionRange", Text)])),
    // A resource.
    ("ref", Text),
    ("data", Text),
    // A channel, of catalogs before they had documents for them.
    ("channelName", Unused),
    ("name", Unused),
    ("replaces", Unused),
    // The excerpt of a ClusterServiceVersion.
    ("annotations", ANNOTATIONS),
    ("crdDescriptions", KINDS),
    ("apiServiceDefinitions", KINDS),
    ("minKubeVersion", Text),
    ("displayName", SHOWN),
    ("keywords", Shape::Shown(&TEXTS)),
    ("maintainers", PEOPLE),
    ("links", LINKS),
    ("provider", LINK),
    ("description", Unused),
    ("installModes", Unused),
    ("labels", Unused),
    ("maturity", Unused),
    ("nativeAPIs", Unused),
]);

/// A resource of a bundle: a ClusterServiceVersion, or the definition of a kind. Other resources may have any keys.
pub(super) static RESOURCE: Shape = Map(&[
    ("apiVersion", Unused),
    ("kind", Text),
    ("metadata", Open(&[("name", Text), ("annotations", ANNOTATIONS)])),
    (
        "spec",
        Map(&[
            ("version", Text),
            ("replaces", Text),
            ("skips", TEXTS),
            ("customresourcedefinitions", KINDS),
            ("apiservicedefinitions", KINDS),
            ("minKubeVersion", Text),
            ("displayName", SHOWN),
            ("keywords", Shape::Shown(&TEXTS)),
            ("maintainers", PEOPLE),
            ("links", LINKS),
            ("provider", LINK),
            ("annotations", Unused),
            ("cleanup", Unused),
            ("description", Unused),
            ("icon", Unused),
            ("install", Unused),
            ("installModes", Unused),
            ("labels", Unused),
            ("maturity", Unused),
            ("nativeAPIs", Unused),
            ("relatedImages", Unused),
            ("release", Text),
            ("selector", Unused),
            ("webhookdefinitions", Unused),
            // Published bundles have these, and no cluster reads them.
            ("MinKubeVersion", Noted),
            ("miniKubeVersion", Noted),
            ("minikubeVersion", Noted),
            ("crds", Noted),
            // The definition of a kind.
            ("group", Text),
            (
                "names",
                Map(&[
                    ("kind", Text),
                    ("categories", Unused),
                    ("listKind", Unused),
                    ("plural", Unused),
                    ("shortNames", Unused),
                    ("singular", Unused),
                ]),
            ),
            (
                "versions",
                List(&Map(&[
                    ("name", Text),
                    ("additionalPrinterColumns", Unused),
                    ("deprecated", Unused),
                    ("deprecationWarning", Unused),
                    ("schema", Unused),
                    ("selectableFields", Unused),
                    ("served", Unused),
                    ("storage", Unused),
                    ("subresources", Unused),
                ])),
            ),
            ("additionalPrinterColumns", Unused),
            ("conversion", Unused),
            ("preserveUnknownFields", Unused),
            ("scope", Unused),
            ("subresources", Unused),
            ("validation", Unused),
        ]),
    ),
    ("status", Unused),
]);

/// The annotations of a ClusterServiceVersion.
const ANNOTATIONS: Shape = Open(&[
    ("description", Text),
    ("repository", Text),
    ("createdAt", Text),
    ("olm.properties", Text),
    ("olm.skipRange", Text),
]);

/// The kinds that a bundle has and needs.
const KINDS: Shape = Map(&[("owned", List(&KIND)), ("required", List(&KIND))]);

/// A kind, by the name of its definition, or by its group.
const KIND: Shape = Map(&[
    ("name", Text),
    ("group", Text),
    ("version", Text),
    ("kind", Text),
    ("actionDescriptors", Unused),
    ("containerPort", Unused),
    ("deploymentName", Unused),
    ("description", Unused),
    ("displayName", Unused),
    ("resources", Unused),
    ("specDescriptors", Unused),
    ("statusDescriptors", Unused),
]);

const LINK: Shape = Shape::Shown(&Map(&[("name", Unused), ("url", Text)]));

const LINKS: Shape = Shape::Shown(&List(&LINK));

/// Takes a document, and the keys in it that its format does not have.
pub(super) type TakeDocument<'a, 't> = dyn FnMut(Node<'t>, Unknown) + 'a;

/// Hands every document of `text`, the content of `file`, to `take`.
pub(super) fn read<'t>(
    file: &str,
    text: &'t str,
    shape: &'static Shape,
    take: &mut TakeDocument<'_, 't>,
) -> Result<(), FormatError> {
    let mut first = None;
    each(text, shape, &mut Values::default(), take, &mut |_, fault| {
        first.get_or_insert(fault);
    });
    first.map_or(Ok(()), |fault| Err(FormatError::new(file, text, fault)))
}

/// Hands every document of `text` to `take`, and the text of each that cannot be read to `broken`, with the reason. It ends where
/// `values` do.
pub(super) fn each<'t>(
    text: &'t str,
    shape: &'static Shape,
    values: &mut Values,
    take: &mut TakeDocument<'_, 't>,
    broken: &mut dyn FnMut(&str, Fault),
) {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    // YAML may have documents that look like JSON. In JSON, there is no line with its mark between them.
    let is_json =
        bare.trim_start().starts_with('{') && !bare.lines().any(|line| line.trim_end() == "---");
    let mut rest = bare;
    loop {
        let read = match is_json {
            true => stream(rest, shape, values, take),
            false => reader::documents(rest, shape, values, take),
        };
        let Err((begin, mut fault)) = read else { return };
        let before = text.len() - rest.len();
        fault.span = fault.span.start + before..fault.span.end + before;
        let from = rest.get(begin..).unwrap_or_default().trim_start();
        let document = from.get(..next(from, is_json)).unwrap_or(from);
        if is_json || document.is_empty() || !is_bare(document) {
            broken(document, fault);
        }
        if values.exceeded_limit().is_some() {
            return;
        }
        rest = from.get(document.len()..).unwrap_or_default();
    }
}

/// Reads JSON values in a row.
fn stream<'t>(
    text: &'t str,
    shape: &'static Shape,
    values: &mut Values,
    take: &mut TakeDocument<'_, 't>,
) -> Result<(), (usize, Fault)> {
    let mut begin = 0;
    loop {
        let rest = text.get(begin..).unwrap_or_default();
        if rest.trim_ascii_start().is_empty() {
            return Ok(());
        }
        values.next_document();
        let read = reader::read_json(rest, shape, values).map_err(|fault| {
            let span = fault.span.start + begin..fault.span.end + begin;
            (begin, Fault { span, ..fault })
        })?;
        take(read.node, read.unknown);
        begin += read.length;
    }
}

/// Where the next document begins, as tools write it: at a line `---`, or at a brace that begins a line.
fn next(text: &str, is_json: bool) -> usize {
    let mark = if is_json { "\n{" } else { "\n---" };
    let is_mark = |at: &usize| {
        let behind = text.get(at + mark.len()..).unwrap_or_default();
        is_json || behind.is_empty() || behind.starts_with(char::is_whitespace)
    };
    let at = text.match_indices(mark).map(|(at, _)| at).find(is_mark);
    at.map_or(text.len(), |at| at + 1)
}

/// Whether a text of YAML has no document, but only comments and directives.
fn is_bare(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.starts_with(['#', '%']))
}

/// The package that a document which cannot be read is about, as far as its text says so.
pub(super) fn named(document: &str) -> Option<&str> {
    let own = || values(document, "name").next();
    let is_package = || values(document, "schema").any(|schema| schema == "olm.package");
    values(document, "package").next().or_else(|| own().filter(|_| is_package()))
}

/// The plain values of a key, wherever it is in a document.
fn values<'t>(document: &'t str, key: &str) -> impl Iterator<Item = &'t str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    document.match_indices(key).filter_map(move |(at, _)| {
        let (before, from) = document.split_at_checked(at)?;
        let behind = from.get(key.len()..)?;
        let behind = behind.strip_prefix(['"', '\'']).unwrap_or(behind).trim_start();
        let value = behind.strip_prefix(':')?.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|letter| !is_plain(letter)).unwrap_or(value.len());
        let is_key = !before.ends_with(is_plain) && end > 0;
        value.get(..end).filter(|_| is_key)
    })
}

/// The text under a key, whether it is written as text, a number or a truth value; a missing and an empty one are the same.
pub(super) fn text(node: &Node<'_>, key: &str) -> Option<String> {
    word(node.last(key))
}

/// A text, a number or a truth value as text.
pub(super) fn word(node: &Node<'_>) -> Option<String> {
    node.scalar().map(str::to_owned)
}

/// Whether anything is written.
pub(super) fn is_there(node: &Node<'_>) -> bool {
    !matches!(node.kind, Kind::Null)
}

/// The values of the list under a key; none if there is no list.
pub(super) fn list<'n, 't>(node: &'n Node<'t>, key: &str) -> &'n [Node<'t>] {
    match &node.last(key).kind {
        Kind::List(items) => items,
        _ => &[],
    }
}

/// The texts of the list under a key.
pub(super) fn texts(node: &Node<'_>, key: &str) -> Vec<String> {
    list(node, key).iter().filter_map(word).collect()
}
