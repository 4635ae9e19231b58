//! The page in the documentation.

use std::fmt::Write as _;

use super::{Fate, Maker, Namespace, Row, rows};

/// What `docs/gc.md` must hold.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let (ours, go): (Vec<_>, Vec<_>) =
        rows().into_iter().partition(|row| row.maker == Maker::Podwire);
    page.push_str("\n## What Podwire's plugins make\n\n");
    table(&mut page, &ours);
    page.push_str(OTHERS);
    table(&mut page, &go);
    page.push_str(END);
    page
}

const INTRODUCTION: &str = "\
# What GC frees

This page is written by the tests (`cargo xtask docs`), and they fail when it is not as
they are. Each row is tried in a world of its own, with one attachment that is valid and
one that is not, whose DEL never came.

GC removes what provably belongs to an attachment of its network that is not valid, and
nothing else:

- `cni.dev/valid-attachments` is the list of what is valid, `cni.dev/attachments` where
  that key is absent. Without either GC frees nothing and warns; `null` and `[]` say that
  nothing is valid. A list of a wrong shape is an error, and nothing is freed.
- Objects of other networks are never touched, whatever the list says.
- An object that can't be removed is an error at the end; the others are removed all the
  same. An address goes back to its pool only when the interface that had it is gone.
- A runtime runs GC alone: no ADD or DEL of the network beside it, nor another GC. Who
  waits for it does so for a limited time, and then fails with code 11 and the holder's
  name.
- What nothing proves stays, and standard error says so.
";

const OTHERS: &str = "
## What the Go plugins made

On a node that was taken over. *stays* means that it is reported.

";

const END: &str = "
The daemon of `dhcp` gives back the leases of what is not valid; the tests of that have
servers, and so a place of their own (`tests/tests/dhcp/`).

Nothing on the host is left by `dummy`, `ipvlan`, `loopback`, `sbr`, `static`, `vlan` and
`vrf` but what their IPAM plugin keeps: what they make lives in the container's namespace
and goes with it.

## Who calls it

CRI-O does once, at its start, with the attachments that it knows. containerd never does,
in no release up to 2.4 and by no setting: the library between it and libcni has no such
call (containerd/go-cni#131). Nor does Podman. What such a runtime has forgotten, because
it lost its own store, stays until somebody says

```
podwire gc NETWORK --keep-live
```

which may be done at any time, also by a timer: it keeps whatever has its namespace.
";

fn table(page: &mut String, rows: &[Row]) {
    page.push_str("| plugin | object | where | evidence | what GC does |\n|---|---|---|---|---|\n");
    for row in rows {
        let fate = match row.fate {
            Fate::Removed => "removed",
            Fate::Reported(_) => "stays",
        };
        let namespace = match row.namespace {
            Namespace::Gone => "",
            Namespace::Kept => ", with the namespace still there",
        };
        let made_by = match row.maker {
            Maker::Podwire => "",
            Maker::Debian => " (1.1.1)",
            Maker::Sid => " (1.9.1)",
        };
        let Row { plugin, object, place, evidence, .. } = row;
        let _ = writeln!(
            page,
            "| `{plugin}`{made_by} | {object} | {place} | {evidence} | {fate}{namespace} |"
        );
    }
}
