//! The container images that a package says it runs: annotations of charts, bundles of operators, and resources as `helm template`
//! writes them.
//!
//! Only rendered templates say for certain what runs. A package that declares no images may have some, and nothing here guesses them.

use std::collections::BTreeSet;

use crate::node::{Fault, FormatError, Kind, Node};
use crate::reader;
use crate::shape::Shape::{self, Open, Text};
use crate::shape::Values;

/// The annotations of charts that list images, as YAML in a text: `- {name: web, image: nginx:1.27}`.
///
/// Sources: HIP-0015 of Helm, Artifact Hub's annotations of charts, and the charts of Bitnami.
const ANNOTATIONS: [&str; 3] = ["helm.sh/images", "artifacthub.io/images", "images"];

/// What is read of a chart.
static CHART: Shape = Open(&[(
    "annotations",
    Open(&[("helm.sh/images", Text), ("artifacthub.io/images", Text), ("images", Text)]),
)]);

/// What the variables of an operator begin with that name images which it starts.
const RELATED: &str = "RELATED_IMAGE_";

/// An image, and what says that it is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeclaredImage {
    /// The image, as it is written: `docker.io/library/nginx:1.27`.
    pub image: String,
    /// The annotation that lists it, or the chart that `helm template` made its resource of.
    pub declared_by: Option<String>,
}

/// The images in the annotations of a chart; `text` is its manifest.
///
/// # Errors
///
/// When the manifest, or a list in an annotation, cannot be read.
pub fn images_of_chart(file: &str, text: &str) -> Result<BTreeSet<DeclaredImage>, FormatError> {
    let failed = |fault| FormatError::new(file, text, fault);
    let root = reader::read(text, &CHART).map_err(failed)?;
    let mut images = BTreeSet::new();
    let Some(annotations) = root.get("annotations").map_err(failed)? else { return Ok(images) };
    for name in ANNOTATIONS {
        let Some((list, node)) = annotations.text(name).map_err(failed)? else { continue };
        let wrong = |reason: &str| {
            let reason = format!("the annotation `{name}` {reason}");
            failed(Fault::new(node.span.clone(), reason))
        };
        let list = reader::read(list, &Shape::All)
            .map_err(|fault| wrong(&format!("cannot be read: {}", fault.reason)))?;
        let Kind::List(items) = &list.kind else { return Err(wrong("must be a list of images")) };
        for item in items {
            // `- nginx:1.27` is written, too.
            let image = match &item.kind {
                Kind::Map(..) => item.last("image").scalar(),
                _ => item.scalar(),
            };
            let image = image.ok_or_else(|| wrong("has an entry without `image`"))?;
            let declared_by = Some(name.to_owned());
            images.insert(DeclaredImage { image: image.to_owned(), declared_by });
        }
    }
    Ok(images)
}

/// The images in resources of Kubernetes: under each key `image`, and in the variables `RELATED_IMAGE_…` of operators.
///
/// # Errors
///
/// When a document is not YAML.
pub fn images_in_resources(file: &str, text: &str) -> Result<BTreeSet<DeclaredImage>, FormatError> {
    let mut images = BTreeSet::new();
    let mut take = |document: Node<'_>, _| walk(text, &document, &mut images);
    reader::documents(text, &Shape::All, &mut Values::default(), &mut take)
        .map_err(|(_, fault)| FormatError::new(file, text, fault))?;
    Ok(images)
}

/// The charts that `helm template` made the resources in `text` of, also those without an image.
pub fn rendered_charts(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| chart_of_source(line.strip_prefix(SOURCE)?)).collect()
}

/// The line that Helm writes before what it made of a template.
const SOURCE: &str = "# Source: ";

/// Adds the images in a value. The reader has bounded how deep it is.
fn walk(text: &str, node: &Node<'_>, images: &mut BTreeSet<DeclaredImage>) {
    match &node.kind {
        Kind::Null | Kind::Scalar(_) => {}
        Kind::List(items) => items.iter().for_each(|item| walk(text, item, images)),
        Kind::Map(entries, _) => {
            let of_variable = || {
                let name = node.last("name").scalar()?;
                name.starts_with(RELATED).then(|| node.last("value"))
            };
            let named = entries.iter().filter(|entry| entry.key == "image");
            let named = named.map(|entry| &entry.value).chain(of_variable());
            for value in named {
                if let Some(image) = value.scalar().filter(|image| is_image(image)) {
                    let declared_by = chart_at(text, value.span.start);
                    images.insert(DeclaredImage { image: image.to_owned(), declared_by });
                }
            }
            entries.iter().for_each(|entry| walk(text, &entry.value, images));
        }
    }
}

/// Whether a text can name an image: a registry's host, a repository, a tag, a digest.
fn is_image(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:@".contains(&byte);
    !text.contains("://") && text.bytes().all(is_part)
}

/// The chart whose template made what stands at a byte of Helm's output.
fn chart_at(text: &str, at: usize) -> Option<String> {
    let before = text.get(..at)?;
    let before = before.rsplit("\n---").next().unwrap_or(before);
    before.lines().rev().find_map(|line| chart_of_source(line.strip_prefix(SOURCE)?))
}

/// `web/charts/mariadb/templates/service.yaml` is of the chart `mariadb`.
fn chart_of_source(path: &str) -> Option<String> {
    let (before, _) = path.split_once("/templates/").or_else(|| path.split_once("/crds/"))?;
    Some(before.rsplit_once("/charts/").map_or(before, |(_, chart)| chart).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(images: &BTreeSet<DeclaredImage>) -> Vec<(&str, Option<&str>)> {
        images.iter().map(|one| (&*one.image, one.declared_by.as_deref())).collect()
    }

    #[test]
    fn annotations_of_charts_list_images() {
        let text = "annotations:\n  artifacthub.io/images: |\n    - name: web\n      image: nginx:1.27\n  \
                    images: |\n    - image: docker.io/bitnami/redis:7\n      name: redis\n    - busybox\n  other: '[}'\n";
        let images = images_of_chart("Chart.yaml", text).expect("is a chart");
        let expected = [
            ("busybox", Some("images")),
            ("docker.io/bitnami/redis:7", Some("images")),
            ("nginx:1.27", Some("artifacthub.io/images")),
        ];
        assert_eq!(names(&images), expected);
        assert!(images_of_chart("Chart.yaml", "name: web\n").expect("is a chart").is_empty());
    }

    #[test]
    fn a_list_that_cannot_be_read_is_an_error() {
        for (list, reason) in [
            ("'[}'", "cannot be read"),
            ("nginx", "must be a list of images"),
            ("'- {name: web}'", "has an entry without `image`"),
        ] {
            let text = format!("annotations:\n  helm.sh/images: {list}\n");
            let error = images_of_chart("Chart.yaml", &text).expect_err("is wrong");
            assert!(error.reason.contains(reason) && error.line == 2, "{error}");
        }
    }

    #[test]
    fn rendered_resources_name_images_and_their_charts() {
        let text = "---\n# Source: web/charts/mariadb/templates/set.yaml\nspec:\n  initContainers:\n  - {image: \"busybox\"}\n  \
                    containers:\n  - image: mariadb:11@sha256:00\n    env:\n    - {name: RELATED_IMAGE_X, value: quay.io/x:1}\n\
                    ---\n# Source: web/templates/a.yaml\nkind: ConfigMap\ndata: {image: 'not one', url: 'x', icon: {image: 'https://a/b'}}\n\
                    ---\n# Source: web/crds/b.yaml\nproperties: {image: {type: string}}\n";
        let images = images_in_resources("r.yaml", text).expect("is YAML");
        let of = Some("mariadb");
        let expected = [("busybox", of), ("mariadb:11@sha256:00", of), ("quay.io/x:1", of)];
        assert_eq!(names(&images), expected);
        assert!(rendered_charts(text).into_iter().eq(["mariadb", "web"]));
        assert!(images_in_resources("r.yaml", "a: [").is_err());
    }
}
