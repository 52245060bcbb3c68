//! `licenses`: the licences of the packages in use, and whether the settings allow them.
//!
//! Licences are compared as SPDX has them. What packages say of themselves is believed; no text of a licence is looked at.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ops::graph::inventory::{Inventory, PackageVersion, license_expression};
use crate::ops::{CommandError, Session};
use crate::workspace::LicenseRules;

/// The licences of the packages in use.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Licenses {
    /// The packages: the workspace's own, followed by those of Mu.lock.
    pub packages: Vec<LicensedPackage>,
    /// How many of them the settings do not allow.
    pub refused: usize,
}

/// A package and its licence.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LicensedPackage {
    /// The package.
    #[serde(flatten)]
    pub package: PackageVersion,
    /// Its licence, as it says; `null` if it says none.
    pub license: Option<String>,
    /// The same as an expression of SPDX, if it is one, or nearly.
    pub spdx: Option<String>,
    /// Whether the settings allow it; `null` if they have no rule, and for the workspace's own packages.
    pub allowed: Option<bool>,
    /// Why the settings allow it although it is not among the allowed licences, or why they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The licences of the packages in use.
pub fn licenses(session: &Session) -> Result<Licenses, CommandError> {
    let rules = &session.workspace.settings.licenses;
    let inventory = Inventory::load(session)?;
    let packages = inventory.packages.iter().map(|package| {
        let spdx = package.license.as_deref().and_then(license_expression);
        let (allowed, reason) = match rules {
            // What the workspace itself publishes is for its authors to decide.
            Some(rules) if package.locked.is_some() => {
                judged(rules, &package.named, spdx.as_deref())
            }
            _ => (None, None),
        };
        let license = package.license.clone();
        LicensedPackage { package: package.named.clone(), license, spdx, allowed, reason }
    });
    let packages: Vec<LicensedPackage> = packages.collect();
    let refused = packages.iter().filter(|package| package.allowed == Some(false)).count();
    Ok(Licenses { packages, refused })
}

/// Whether the settings allow a licence, and why.
fn judged(
    rules: &LicenseRules,
    package: &PackageVersion,
    license: Option<&str>,
) -> (Option<bool>, Option<String>) {
    let is_allowed = |expression: &spdx::Expression| {
        expression.evaluate(|asked| rules.allow.iter().any(|allowed| allowed.satisfies(asked)))
    };
    let expression = license.and_then(|license| spdx::Expression::parse(license).ok());
    if expression.is_some_and(|expression| is_allowed(&expression)) {
        return (Some(true), None);
    }
    // An exception is told only where it is needed.
    if let Some(reason) = rules.except.get(&package.id) {
        return (Some(true), Some(reason.clone()));
    }
    let reason = match license {
        None => "it has no licence of SPDX",
        Some(_) => "its licence is not allowed",
    };
    (Some(false), Some(reason.to_owned()))
}
