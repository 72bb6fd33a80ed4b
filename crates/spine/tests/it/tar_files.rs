//! Tar files of other tools and hostile tar files: each fault is reported, nothing is unpacked, and every check ends.

use std::io::Read;

use steno_spine::{Report, Rule, Snapshots, validate_tar};

use crate::kit::{Files, bundle_files, tar_of};

const BLOCK_BYTES: usize = 512;

fn rules(report: &Report) -> Vec<Rule> {
    report.findings.iter().map(|finding| finding.rule).collect()
}

/// Returns a tar entry with any name and type.
fn entry(name: &[u8], flag: u8, content: &[u8]) -> Vec<u8> {
    let mut header = vec![0; BLOCK_BYTES];
    let fits = name.len().min(100);
    header[..fits].copy_from_slice(&name[..fits]);
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[148..156].fill(b' ');
    header[156] = flag;
    header[157..161].copy_from_slice(b"/etc");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let padding = content.len().wrapping_neg() % BLOCK_BYTES;
    [&header[..], content, &vec![0; padding]].concat()
}

/// Checks the valid bundle with entries before it.
fn with(entries: &[Vec<u8>]) -> Report {
    let good = tar_of(&bundle_files(Snapshots::Whole));
    // Tools write the directory of the bundle first.
    let top = entry(b"bundle/", b'5', b"");
    validate_tar(&[&top[..], &entries.concat(), &good].concat()[..])
}

#[test]
fn each_hostile_entry_is_reported() {
    assert_eq!(with(&[]).findings, [], "the control");
    let long = [&b"bundle/artifacts/"[..], &[b'x'; 80]].concat();
    assert_eq!(
        rules(&with(&[entry(&long, b'0', b"")])),
        [Rule::ArtifactUnused],
        "a long name that is none too long"
    );
    for (name, flag, want) in [
        (&b"bundle/spine/segment-009.jsonl"[..], b'2', Rule::FileKind),
        (b"bundle/spine/segment-009.jsonl", b'1', Rule::FileKind),
        (b"bundle/artifacts/device", b'3', Rule::FileKind),
        (b"bundle/artifacts/device", b'4', Rule::FileKind),
        (b"bundle/artifacts/fifo", b'6', Rule::FileKind),
        (b"bundle/artifacts/sparse", b'S', Rule::FileKind),
        (b"/etc/passwd", b'0', Rule::FileName),
        (b"../outside", b'0', Rule::FileName),
        (b"bundle/../../outside", b'0', Rule::FileName),
        (b"bundle/artifacts/..", b'0', Rule::FileName),
        (b"bundle//artifacts/x", b'0', Rule::FileName),
        (b"bundle/artifacts/./x", b'0', Rule::FileName),
        (b"bundle/artifacts\\x", b'0', Rule::FileName),
        (b"bundle/artifacts/\x1b[2J", b'0', Rule::FileName),
        (b"bundle/artifacts/\xff", b'0', Rule::FileName),
        (b"elsewhere/x", b'0', Rule::FileName),
        (b"bundle/artifacts/a/b", b'0', Rule::BundleUnknown),
        (b"bundle/bin/sh", b'0', Rule::BundleUnknown),
    ] {
        let found = rules(&with(&[entry(name, flag, b"")]));
        assert_eq!(found, [want], "{}", String::from_utf8_lossy(name));
    }
}

#[test]
fn duplicate_name_is_reported_and_the_first_file_counts() {
    let mut files = bundle_files(Snapshots::Whole);
    let first = files.remove("bundle.json").unwrap();
    let second = entry(b"bundle/bundle.json", b'0', b"{}");
    {
        let (one, other) = (first.clone(), second.clone());
        let bytes = [&entry(b"bundle/bundle.json", b'0', &one)[..], &other, &tar_of(&files)].concat();
        assert_eq!(rules(&validate_tar(&bytes[..])), [Rule::BundleDuplicate]);
    }
}

#[test]
fn tar_files_of_other_tools_are_read() {
    let files = bundle_files(Snapshots::Whole);
    // Without an outer directory, with `./`, and with names in separate headers.
    let mut plain = Vec::new();
    let mut dotted = entry(b"./", b'5', b"");
    let mut gnu = Vec::new();
    let mut pax = Vec::new();
    for (name, bytes) in &files {
        plain.extend(entry(name.as_bytes(), b'0', bytes));
        dotted.extend(entry(format!("./{name}").as_bytes(), 0, bytes));
        gnu.extend(entry(b"././@LongLink", b'L', format!("{name}\0").as_bytes()));
        gnu.extend(entry(b"cut", b'0', bytes));
        let record = format!("path={name}\n");
        let len = record.len() + 4;
        assert!((100..1000).contains(&len) || len < 100);
        let line = if len >= 100 { format!("{len} {record}") } else { format!("{} {record}", len - 1) };
        pax.extend(entry(b"PaxHeaders/x", b'x', format!("{line}20 ctime=1794793597.5\n").as_bytes()));
        pax.extend(entry(b"cut", b'0', bytes));
    }
    pax.splice(0..0, entry(b"pax_global_header", b'g', b"18 comment=abcdef\n"));
    for (what, mut bytes) in [("plain", plain), ("dotted", dotted), ("gnu", gnu), ("pax", pax)] {
        bytes.extend([0; 10_240]);
        assert_eq!(validate_tar(&bytes[..]).findings, [], "{what}");
    }
}

#[test]
fn endless_names_files_and_entries_are_refused() {
    // A header announces a name of four gigabytes.
    let mut huge = entry(b"././@LongLink", b'L', b"");
    huge[124..135].copy_from_slice(b"40000000000");
    fix_sum(&mut huge);
    let report = validate_tar(huge.chain(std::io::repeat(b'x')));
    assert_eq!(report.findings[0].rule, Rule::BundleTar);
    assert!(report.findings[0].words.contains("a name that is too long"), "{}", report.findings[0].words);
    // A file beyond the size limit is refused without reading it.
    let mut huge = entry(b"bundle/artifacts/x", b'0', b"");
    huge[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    fix_sum(&mut huge);
    let report = validate_tar(huge.chain(std::io::repeat(0)));
    assert_eq!(report.findings[0].rule, Rule::Limit);
    // More entries than the limit.
    let mut bytes = Vec::new();
    for _ in 0..100_001 {
        bytes.extend(entry(b"./", b'5', b""));
    }
    assert_eq!(validate_tar(&bytes[..]).findings[0].rule, Rule::Limit);
}

fn fix_sum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header[..BLOCK_BYTES].iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

#[test]
fn other_files_are_not_tar_files() {
    for bytes in [&b""[..], b"no tar file", &[0xff; 2048], &[0; 100]] {
        // No files are reported as missing.
        let report = validate_tar(bytes);
        assert_eq!(rules(&report), [Rule::BundleTar]);
        assert!(!report.is_valid());
    }
    let empty = validate_tar(&[0; 1024][..]);
    assert_eq!(rules(&empty), [Rule::SegmentMissing, Rule::BundleJson]);
}

#[test]
fn hostile_lines_in_a_bundle_are_reported() {
    let deep = "[".repeat(1_000_000);
    let names: Vec<String> = (0..50_000).map(|number| format!("\"a{number}\":1")).collect();
    let many_names = format!("{{{}}}", names.join(","));
    for line in
        [deep.as_str(), "1e999999", "{\"seq\":18446744073709551616}", "\"\\ud800\"", "\0", &many_names]
    {
        let mut files = Files::new();
        files.insert("spine/segment-000.jsonl".into(), format!("{line}\n{line}\n").into_bytes());
        let report = validate_tar(&tar_of(&files)[..]);
        assert!(!report.is_valid() || !report.findings.is_empty(), "{}", &line[..line.len().min(40)]);
    }
}
