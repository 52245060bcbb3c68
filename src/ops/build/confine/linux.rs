//! Confinement by Linux: Landlock limits which files a process reaches, and a seccomp filter refuses what would reach the network or
//! other processes. Both also hold for every process that it starts, and nothing takes them back.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    Scope, path_beneath_rules,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use crate::ops::build::confine::Job;

/// The first version of Landlock that also limits cutting files off: Linux 6.2.
const NEEDED: ABI = ABI::V3;

/// Devices that programs may read. The first may also be written.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"];

/// Whether the kernel can confine programs.
pub(super) fn is_supported() -> Result<(), String> {
    let says =
        |error: &dyn std::fmt::Display| format!("this machine cannot confine programs: {error}");
    ruleset().map_err(|_| {
        says(&"its kernel has no Landlock, or an old one (Linux 6.2 or newer is needed, with `landlock` in its `lsm=` list)")
    })?;
    filter().map_err(|error| says(&error))?;
    Ok(())
}

/// Confines this thread, which is the only one of its process.
pub(super) fn confine(job: &Job) -> Result<(), String> {
    let filter = filter()?;
    files(job).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&filter).map_err(|error| error.to_string())
}

/// What is limited: all access to files, and where the kernel can, also ports, other processes' signals and their sockets.
fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .scope(Scope::from_all(ABI::V6))?
        .create()
}

fn files(job: &Job) -> Result<(), RulesetError> {
    let special: BitFlags<AccessFs> =
        AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::IoctlDev;
    let write = AccessFs::from_all(ABI::V5) & !special;
    let read = AccessFs::from_read(NEEDED);
    let mut rules = ruleset()?
        .add_rules(path_beneath_rules(&job.read, read))?
        .add_rules(path_beneath_rules(&job.write, write))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile))?;
    if let Ok(null) = PathFd::new(DEVICES[0]) {
        let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
        rules = rules.add_rule(PathBeneath::new(null, access))?;
    }
    rules.restrict_self().map(|_| ())
}

/// Refuses sockets of every kind (pairs of connected ones stay), what could open one without the call, and the kernel's keyrings.
/// A socket to another process of the same user, such as its service manager's, would lead out, too.
fn filter() -> Result<BpfProgram, String> {
    let refused = [
        libc::SYS_socket,
        libc::SYS_io_uring_setup,
        libc::SYS_add_key,
        libc::SYS_keyctl,
        libc::SYS_request_key,
    ];
    let mut rules = BTreeMap::new();
    for call in refused {
        rules.insert(call, Vec::new());
        // The same calls by their other numbers, which some kernels know.
        #[cfg(target_arch = "x86_64")]
        rules.insert(call | 0x4000_0000, Vec::new());
    }
    let machine =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let denied = SeccompAction::Errno(libc::EACCES.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, machine);
    filter.and_then(TryInto::try_into).map_err(|error| error.to_string())
}
