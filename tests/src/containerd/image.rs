//! A container image made of the static busybox alone, by hand: no registry and no
//! other tool is needed.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use sha2::{Digest as _, Sha256};

/// The image's name.
pub const IMAGE: &str = "localhost/podwire/busybox:1";

/// What the page server in it answers.
pub const PAGE: &str = "a page of the pod\n";

/// Programs that containers start.
const APPLETS: [&str; 5] = ["sh", "sleep", "httpd", "ip", "wget"];

/// Writes the image as an archive of the format of `docker save`. Without a command it
/// waits, so that it also serves as the image of a sandbox.
#[track_caller]
pub(super) fn write(path: &Path) {
    let layer = layer();
    let layer_digest = digest(&layer);
    let config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "1000000"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_digest}")]},
    })
    .to_string();
    let config_name = format!("{}.json", digest(config.as_bytes()));
    let layer_name = format!("{layer_digest}/layer.tar");
    let manifest = json!([{"Config": config_name, "RepoTags": [IMAGE], "Layers": [layer_name]}]);
    let mut archive = tar::Builder::new(std::fs::File::create(path).unwrap());
    file(&mut archive, "manifest.json", 0o644, manifest.to_string().as_bytes());
    file(&mut archive, &config_name, 0o644, config.as_bytes());
    file(&mut archive, &layer_name, 0o644, &layer);
    archive.into_inner().unwrap();
}

fn layer() -> Vec<u8> {
    let busybox = std::fs::read("/bin/busybox").expect("busybox; run: cargo xtask setup");
    let mut layer = tar::Builder::new(Vec::new());
    for name in ["bin/", "dev/", "etc/", "proc/", "sys/", "tmp/", "www/"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        header.set_mode(0o755);
        layer.append_data(&mut header, name, &[][..]).unwrap();
    }
    file(&mut layer, "bin/busybox", 0o755, &busybox);
    for applet in APPLETS {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        layer.append_link(&mut header, format!("bin/{applet}"), "busybox").unwrap();
    }
    file(&mut layer, "etc/passwd", 0o644, b"root:x:0:0:root:/:/bin/sh\n");
    file(&mut layer, "etc/group", 0o644, b"root:x:0:\n");
    file(&mut layer, "www/index.html", 0o644, PAGE.as_bytes());
    layer.into_inner().unwrap()
}

fn file(archive: &mut tar::Builder<impl std::io::Write>, name: &str, mode: u32, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    archive.append_data(&mut header, name, content).unwrap();
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
