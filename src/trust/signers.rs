//! The signers and roots that settings name, with what is in their files.
//!
//! Only what a rule needs is read, once a run. What they accept is not decided here.

use mu_provider::threads::lock;
use mu_provider::{Folder, NamedBy};
use mu_trust::{MOST_KEY_BYTES, Roots, Signer};

use super::{TrustError, TrustInForce};
use crate::fs;
use crate::workspace::trust::{
    RootSetting, RuleInForce, SignerSetting, SignerText, TrustFile, settings_file,
};

/// The largest file of a root, in bytes.
const LARGEST_ROOT: usize = 1 << 20;

impl TrustInForce {
    /// A signer of the settings, with the keys that it names.
    pub fn signer_of(
        &self,
        named_by: NamedBy,
        name: &str,
        setting: &SignerSetting,
    ) -> Result<Signer, TrustError> {
        // Both files may have a signer of this name.
        let key = (named_by == NamedBy::User, name.to_owned());
        if let Some(known) = lock(&self.signers).get(&key) {
            return Ok(known.clone());
        }
        let failed = |why: String| TrustError::Signer {
            name: name.to_owned(),
            file: settings_file(named_by),
            line: setting.line,
            why,
        };
        let signer = match &setting.who {
            SignerText::Keys(text) => {
                Signer::from_keys(name, text).map_err(|error| failed(error.to_string()))?
            }
            SignerText::File(file) => {
                let text = self.read(file, MOST_KEY_BYTES).map_err(&failed)?;
                let signer = Signer::from_keys(name, &text);
                signer.map_err(|error| failed(format!("`{file}`: {error}")))?
            }
            SignerText::Github(github) => {
                Signer::github(name, github.clone()).map_err(|error| failed(error.to_string()))?
            }
            SignerText::Oidc(oidc) => {
                Signer::oidc(name, oidc.clone()).map_err(|error| failed(error.to_string()))?
            }
        };
        lock(&self.signers).insert(key, signer.clone());
        Ok(signer)
    }

    /// The roots that settings name; those that come with mu, if they name none.
    pub fn roots(&self, settings: &[&RootSetting]) -> Result<Roots, TrustError> {
        if settings.is_empty() {
            return Ok(Roots::sigstore());
        }
        let mut roots = Roots::none();
        for setting in settings {
            match setting {
                RootSetting::Sigstore => roots.add_sigstore(),
                RootSetting::File(file) => {
                    let failed = |why| TrustError::Root { name: file.to_string(), why };
                    let text = self.read(file, LARGEST_ROOT).map_err(failed)?;
                    let added = roots.add(&file.to_string(), text.as_bytes());
                    added.map_err(|error| failed(error.why))?;
                }
            }
        }
        Ok(roots)
    }

    pub(super) fn signers_of(
        &self,
        rule: &RuleInForce<'_>,
        names: &[String],
    ) -> Result<Vec<Signer>, TrustError> {
        // Reading the settings has refused a name that nobody has.
        let settings = names.iter().filter_map(|name| Some((name, rule.signer_named(name)?)));
        settings
            .map(|(name, (named_by, setting))| self.signer_of(named_by, name, setting))
            .collect()
    }

    /// The text of a file that the settings name.
    fn read(&self, file: &TrustFile, most: usize) -> Result<String, String> {
        let text = match file {
            TrustFile::InWorkspace(path) => {
                Folder::at(&self.root).and_then(|root| root.read_text(path))
            }
            TrustFile::OfUser(path) => fs::read_text_if_there(path),
        };
        match text {
            Ok(Some(text)) if text.len() <= most => Ok(text),
            Ok(Some(_)) => Err(format!("`{file}` has more than {most} bytes")),
            Ok(None) => Err(format!("there is no file `{file}`")),
            Err(error) => Err(mu_provider::with_causes(&error)),
        }
    }
}
