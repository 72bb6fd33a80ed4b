//! Creating, reading and refusing the store's format file.

use std::sync::Arc;

use steno_disk::{RealDisk, StorePath};
use steno_journal::{Error, Store};
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

fn create(disk: &SimDisk) -> Result<Store, Error> {
    Store::create(Arc::new(disk.clone()))
}

#[test]
fn new_store_has_its_format_version() {
    let disk = SimDisk::new(1);
    create(&disk).unwrap();
    let text = disk.content(&StorePath::format()).unwrap();
    assert_eq!(text, b"{\"format\":\"steno.store\",\"version\":2}\n");
    create(&disk).unwrap();
    assert_eq!(disk.content(&StorePath::format()).unwrap(), text);
}

#[test]
fn store_of_a_newer_format_is_refused() {
    let disk = SimDisk::new(1);
    disk.tamper(&StorePath::format(), b"{\"format\":\"steno.store\",\"version\":3,\"x\":1}");
    for opened in [create(&disk), Store::open(Arc::new(disk.clone()))] {
        assert!(matches!(opened.err(), Some(Error::StoreTooNew { found: 3, known: 2 })));
    }
}

#[test]
fn writer_upgrades_an_older_store_and_reader_does_not() {
    let disk = SimDisk::new(1);
    let old = b"{\"format\":\"steno.store\",\"version\":1}\n";
    disk.tamper(&StorePath::format(), old);
    Store::open(Arc::new(disk.clone())).unwrap();
    assert_eq!(disk.content(&StorePath::format()).unwrap(), old);
    create(&disk).unwrap();
    let disk = disk.die(Death::PowerCut);
    let text = disk.content(&StorePath::format()).unwrap();
    assert_eq!(text, b"{\"format\":\"steno.store\",\"version\":2}\n");
}

#[test]
fn invalid_format_file_is_refused() {
    for text in [
        &b"{}"[..],
        b"",
        b"{\"format\":\"other\",\"version\":1}",
        b"{\"format\":\"steno.store\",\"version\":0}",
    ] {
        let disk = SimDisk::new(1);
        disk.tamper(&StorePath::format(), text);
        assert!(matches!(create(&disk).err(), Some(Error::BadFormatFile { .. })));
    }
}

#[test]
fn directory_with_other_files_does_not_become_a_store() {
    let disk = SimDisk::new(1);
    disk.tamper(&steno_journal::RunFile::Notes(steno_testkit::sample::run_id(1)).path(), b"");
    create(&disk).unwrap();
    let other = SimDisk::new(1);
    other.tamper(&StorePath::locks(), b"");
    other.tamper(&StorePath::spine_of(&steno_model::ThreadId::parse("t").unwrap()).torn(1, "x"), b"");
    create(&other).unwrap();
    let stranger = SimDisk::new(1);
    stranger.tamper(&StorePath::transcripts().torn(0, "thesis"), b"mine");
    assert!(matches!(create(&stranger).err(), Some(Error::NotAStore { found }) if found.contains("thesis")));
}

#[test]
fn creation_of_a_store_can_be_repeated_after_a_crash() {
    for call in 1..12 {
        let disk = SimDisk::new(call);
        disk.plan(Fault::DieAt { call });
        let made = create(&disk);
        for death in [Death::Kill, Death::PowerCut] {
            create(&disk.die(death)).unwrap();
        }
        if made.is_ok() {
            return;
        }
    }
    panic!("the store is made within eleven calls");
}

#[test]
fn several_threads_can_create_the_same_store() {
    const THREADS: usize = 4;
    for _ in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("store");
        let together = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    together.wait();
                    Store::create(Arc::new(RealDisk::create(&root).unwrap())).unwrap();
                });
            }
        });
        let mut names: Vec<_> =
            std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["format.json", "locks", "transcripts"], "nothing half done stays");
        Store::open(Arc::new(RealDisk::open(&root).unwrap().unwrap())).unwrap();
    }
}

#[test]
fn failed_creation_of_a_store_is_an_error() {
    let disk = SimDisk::new(1);
    disk.plan(Fault::Fail { kind: Call::Create, nth: 1, error: 30 });
    assert!(matches!(create(&disk).err(), Some(Error::Io { doing: "write", .. })));
}
