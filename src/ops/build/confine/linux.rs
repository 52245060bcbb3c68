//! The two walls on Linux. The first is `bwrap` of the package bubblewrap: it gives a program namespaces of its own, in which there is nothing but what is bound
//! here, all of it read-only, and one file system in memory whose size is the limit.
//!
//! The second is there should one of `bwrap`'s have a hole: a filter of system calls, and Landlock.
//!
//! The filter is a list of what is refused, not of what is allowed: a list of allowed calls would have to name several hundred, other ones on each
//! processor, and would break compilers with each new C library. The namespaces are what confines; this keeps parts of the kernel out of reach.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use libc::c_long;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use super::{FIRST, Order, Places, SYSTEM, TRY, Unconfined, shown};
use crate::fs::FileError;

/// Where the program is. Nothing else is asked, so that nobody can put another one before it.
const PROGRAMS: [&str; 4] =
    ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// The folder of everything that a program can write, in memory.
pub(super) const WRITABLE: &str = "/build";

/// What is bound read-only: mu itself, the package, and what this depends on.
const MU: &str = "/mu/program";
const PACKAGE: &str = "/mu/package";
const PACKS: &str = "/mu/packs";

/// The size of the memory that programs share by name, as containers have it. Its locks are there, too.
const SHARED: &str = "67108864";

fn program() -> Option<&'static Path> {
    PROGRAMS.iter().map(Path::new).find(|path| path.is_file())
}

/// Runs the smallest program there is behind the same walls, so that the reason is the true one.
pub(super) fn is_supported() -> Result<String, Unconfined> {
    let Some(program) = program() else {
        return Err(Unconfined {
            why: format!("this machine cannot confine programs: there is no `{}`", PROGRAMS[0]),
            advice: "install the package `bubblewrap`, such as with `apt install bubblewrap` or `dnf install bubblewrap`".to_owned(),
        });
    };
    let mu = std::env::current_exe().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments(&mu, 1 << 20, &[])).args([MU, FIRST, TRY]);
    let said = match command.env_clear().stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => return Ok(program.display().to_string()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            said.lines().next().map_or_else(|| output.status.to_string(), str::to_owned)
        }
        Err(error) => error.to_string(),
    };
    Err(Unconfined {
        why: format!(
            "this machine cannot confine programs: `{}` does not work here: {said}",
            program.display()
        ),
        advice: "a container or the kernel may forbid user namespaces, and an old bubblewrap may lack an option (0.8 has all): see \
                 docs/troubleshooting.md"
            .to_owned(),
    })
}

/// The command that runs mu as the first process behind the walls.
pub(super) fn command(order: &Order<'_>, mu: &Path) -> Result<(Command, Places), FileError> {
    let packs = shown(order.dependencies)?.into_iter();
    let mut bound: Vec<_> = packs.map(|(at, from)| (Path::new(PACKS).join(at), from)).collect();
    bound.push((PACKAGE.into(), order.package.to_owned()));
    let mut command = Command::new(program().unwrap_or(Path::new(PROGRAMS[0])));
    command.args(arguments(mu, order.bytes, &bound)).args([MU, FIRST]);
    let below = |name| Path::new(WRITABLE).join(name);
    let places = Places {
        package: PACKAGE.into(),
        packs: PACKS.into(),
        tree: below("tree"),
        temporary: below("tmp"),
        home: below("home"),
    };
    Ok((command, places))
}

fn arguments(mu: &Path, bytes: u64, bound: &[(PathBuf, PathBuf)]) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut add = |words: &[&dyn AsRef<OsStr>]| {
        all.extend(words.iter().map(|word| word.as_ref().to_owned()));
    };
    // All namespaces, also where the user could do without one. It ends with mu, has no terminal, and no rights of a superuser.
    add(&[&"--unshare-all", &"--unshare-user", &"--die-with-parent", &"--new-session"]);
    add(&[&"--as-pid-1", &"--cap-drop", &"ALL"]);
    // The same on every machine.
    add(&[&"--uid", &"1000", &"--gid", &"1000", &"--hostname", &"build"]);
    // What this machine does not have is left out.
    for path in SYSTEM {
        add(&[&"--ro-bind-try", &path, &path]);
    }
    add(&[&"--ro-bind", &mu, &MU, &"--dir", &PACKS]);
    for (to, from) in bound {
        add(&[&"--ro-bind", from, to]);
    }
    // The superuser's processes could write what `/proc` has of the whole machine, without any further right.
    add(&[&"--proc", &"/proc", &"--remount-ro", &"/proc"]);
    add(&[&"--dev", &"/dev", &"--size", &SHARED, &"--tmpfs", &"/dev/shm"]);
    add(&[&"--remount-ro", &"/dev"]);
    // Everything that a build writes is in here, so the size of this file system is its limit.
    add(&[&"--size", &bytes.to_string(), &"--tmpfs", &WRITABLE]);
    add(&[&"--symlink", &"build/tmp", &"/tmp"]);
    add(&[&"--remount-ro", &"/", &"--chdir", &WRITABLE, &"--"]);
    all
}

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
