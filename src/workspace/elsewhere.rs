//! What a workspace leads elsewhere than its user does, or than ids do: what its user should know, and what the user's trust does
//! not cover.

use mu_provider::NamedBy;

use super::{ConfiguredRegistry, Settings};
use crate::manifest::Globs;
use crate::reference::{Base, PackageId};

/// What the user's own file says, in whatever workspace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OfUser {
    /// The base of references without one.
    pub base: Base,
    /// Where bases really are.
    pub registries: Vec<ConfiguredRegistry>,
}

/// Patterns of packages whose `build` may be run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrustedBuilds {
    /// Those of the user, whose short names have the user's base.
    pub of_user: Option<Globs>,
    /// Those of the workspace, whose short names have its base.
    pub of_workspace: Option<Globs>,
}

/// Why the build of a package is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untrusted<'s> {
    /// No pattern names it, or only those of the workspace, which are not enough where the user has some.
    Unnamed,
    /// It comes from another place than its id says: a registry of the workspace has it.
    Led(&'s ConfiguredRegistry),
    /// The workspace uses something else instead of it.
    Overridden,
}

/// A base, or a part of one, that the workspace leads elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectedBase {
    /// The start of the ids.
    pub prefix: String,
    /// What they lead to, as the settings say it.
    pub place: String,
}

impl Settings {
    /// Why the build of a package may not run; `None` if the settings trust it. What the user and the workspace say is joined: both
    /// must name it, as far as they name any.
    pub fn untrusted(&self, id: &PackageId) -> Option<Untrusted<'_>> {
        let TrustedBuilds { of_user, of_workspace } = &self.trusted_builds;
        let names = |patterns: &Globs, base: &Base| {
            patterns.matches(id.as_str()) || patterns.matches(id.short(base))
        };
        let by_user = of_user.as_ref().map(|patterns| names(patterns, &self.of_user.base));
        let by_workspace = of_workspace.as_ref().map(|patterns| names(patterns, &self.base));
        if by_user.or(by_workspace) != Some(true) || by_workspace == Some(false) {
            return Some(Untrusted::Unnamed);
        }
        // Only what the user trusts depends on where that is for the user.
        by_user?;
        if self.overridden_here.contains(id) {
            return Some(Untrusted::Overridden);
        }
        let registry = self.registry(id).filter(|registry| self.is_elsewhere(registry));
        registry.map(Untrusted::Led)
    }

    /// The bases that the workspace leads elsewhere than the user's settings or the default do. A base of its own, which is not the
    /// default one and which the user's settings do not name, is the workspace's own matter.
    pub fn redirected_bases(&self) -> Vec<RedirectedBase> {
        let known = self.of_user.registries.iter().map(|registry| registry.base());
        let known: Vec<&str> = known.chain([self.of_user.base.as_str()]).collect();
        let default = Base::default();
        let is_known = |prefix: &str| {
            let is_of = |base: &str| prefix.starts_with(base);
            is_of(default.as_str()) || known.iter().any(|base| is_of(base))
        };
        let led = self.registries.iter().filter(|registry| self.is_elsewhere(registry));
        let led =
            led.filter(|registry| is_known(&registry.prefix)).map(|registry| RedirectedBase {
                prefix: registry.prefix.clone(),
                place: registry.url.as_ref().map(ToString::to_string).unwrap_or_default(),
            });
        let named = self.aliases_here.iter().filter(|alias| is_known(&alias.from));
        let named = named
            .map(|alias| RedirectedBase { prefix: alias.from.clone(), place: alias.to.clone() });
        led.chain(named).collect()
    }

    /// Whether a registry is one of the workspace, and leads its packages elsewhere than they would be without it.
    fn is_elsewhere(&self, registry: &ConfiguredRegistry) -> bool {
        let Some(url) = registry.url.as_ref().filter(|_| registry.named_by == NamedBy::Workspace)
        else {
            return false;
        };
        let covers = |other: &&ConfiguredRegistry| registry.prefix.starts_with(&*other.prefix);
        let before = self.of_user.registries.iter().filter(covers);
        let before = before.max_by_key(|other| other.prefix.len());
        let place = url.as_url().as_str().trim_end_matches('/');
        let expected = match before {
            Some(before) => {
                let Some(url) = &before.url else {
                    return place != format!("https://{}", registry.prefix.trim_end_matches('/'));
                };
                // What is left of the prefix is a folder there.
                let rest = registry.prefix.get(before.prefix.len()..).unwrap_or_default();
                format!("{}{rest}", url.as_folder().as_url())
            }
            None => format!("https://{}", registry.prefix),
        };
        place != expected.trim_end_matches('/')
    }
}
