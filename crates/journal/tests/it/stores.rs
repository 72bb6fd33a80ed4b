//! The store's format file: made, read, refused.

use std::sync::Arc;

use steno_disk::{RealDisk, StorePath};
use steno_journal::{Error, Store};
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

fn create(disk: &SimDisk) -> Result<Store, Error> {
    Store::create(Arc::new(disk.clone()))
}

#[test]
fn a_new_store_has_its_format_version() {
    let disk = SimDisk::new(1);
    create(&disk).unwrap();
    let text = disk.content(&StorePath::format()).unwrap();
    assert_eq!(text, b"{\"format\":\"steno.store\",\"version\":2}\n");
    create(&disk).unwrap();
    assert_eq!(disk.content(&StorePath::format()).unwrap(), text);
}

#[test]
fn a_newer_store_is_refused_by_writers_and_readers() {
    let disk = SimDisk::new(1);
    disk.tamper(&StorePath::format(), b"{\"format\":\"steno.store\",\"version\":3,\"x\":1}");
    for opened in [create(&disk), Store::open(Arc::new(disk.clone()))] {
        assert!(matches!(opened.err(), Some(Error::StoreTooNew { found: 3, known: 2 })));
    }
}

#[test]
fn an_older_store_is_read_as_it_is_and_raised_by_a_writer() {
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
fn a_format_file_of_something_else_is_refused() {
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
fn a_directory_of_other_things_does_not_become_a_store() {
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
fn a_crash_while_the_store_is_made_leaves_a_store_that_can_be_made() {
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
fn threads_that_make_the_same_store_make_one_store() {
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
fn a_store_that_cannot_be_written_is_an_error() {
    let disk = SimDisk::new(1);
    disk.plan(Fault::Fail { kind: Call::Create, nth: 1, error: 30 });
    assert!(matches!(create(&disk).err(), Some(Error::Io { doing: "write", .. })));
}
