//! The second wall on Linux, should one of `bwrap`'s have a hole: a filter of system calls, and Landlock.
//!
//! The filter is a list of what is refused, not of what is allowed: a list of allowed calls would have to name several hundred, other ones on each
//! processor, and would break compilers with each new C library. The namespaces are what confines; this keeps parts of the kernel out of reach.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use libc::c_long;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// What no build needs.
const REFUSED: &[c_long] = &[
    // Sockets. Pairs of connected ones stay.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_io_uring_setup,
    // Keyrings, which no namespace separates.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    // What is for whoever runs the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];

/// The flags with which a new process gets a namespace of its own.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Restricts this thread, and all that it starts, to changing files below `writable`; nothing takes it back.
pub(super) fn restrict(writable: &str) -> Result<(), String> {
    files(writable).map_err(|error| error.to_string())?;
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    // `clone` has its flags in its first argument. One rule for each flag: any of them is enough to be refused.
    let flag = |flag: i32| {
        let flag = u64::from(flag.cast_unsigned());
        let is_set = SeccompCmpOp::MaskedEq(flag);
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, is_set, flag)?;
        SeccompRule::new(vec![condition])
    };
    let flags: Result<_, _> = NAMESPACES.into_iter().map(flag).collect();
    rules.insert(libc::SYS_clone, flags.map_err(|error| error.to_string())?);
    refuse(rules, libc::EPERM)?;
    // Its flags are in memory, where no filter looks. Who does not find it uses the older call.
    refuse(Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn refuse(mut rules: Rules, error: i32) -> Result<(), String> {
    // The same calls by their other numbers, which some kernels know.
    #[cfg(target_arch = "x86_64")]
    rules.extend(rules.clone().into_iter().map(|(call, rules)| (call | 0x4000_0000, rules)));
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let machine = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| text(&error))?;
    let refused = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, machine);
    let filter: seccompiler::BpfProgram =
        filter.and_then(TryInto::try_into).map_err(|error| text(&error))?;
    seccompiler::apply_filter(&filter).map_err(|error| text(&error))
}

/// As far as the kernel can: no file can be changed but those in memory, no port be used, no process outside be reached.
fn files(writable: &str) -> Result<(), RulesetError> {
    let all = AccessFs::from_all(ABI::V5);
    // Rights that an older kernel does not know are left out: this is the second wall.
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    let rules = rules.add_rules(path_beneath_rules(["/"], AccessFs::from_read(ABI::V5)))?;
    rules.add_rules(path_beneath_rules([writable, "/dev"], all))?.restrict_self().map(|_| ())
}
