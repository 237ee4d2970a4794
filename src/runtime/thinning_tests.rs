use std::fs;

use providers::model::{Identity, ResourceKind};

use super::*;
use crate::rules::checkpoint::{Proof, QUIET, Recipe};

fn copy(to: &Path, place: &Path) -> Saved {
    Saved {
        op: OpId(7),
        identity: Identity { account: "team".into(), kind: ResourceKind::Instance, id: "31".into(), generation: 0 },
        recipe: Recipe {
            name: "default".to_owned(),
            paths: vec!["/out".to_owned()],
            method: Method::Copy { to: to.display().to_string() },
            prepare: None,
            quiet: QUIET,
        },
        proof: Proof {
            at: jiff::Timestamp::UNIX_EPOCH,
            files: 1,
            bytes: 1,
            left_out: 0,
            place: place.display().to_string(),
            manifest: String::new(),
        },
    }
}

/// A folder of copies with one whole copy in it.
fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let to = home.path().join("copies");
    let place = to.join("vast-team").join("trainer-31").join("20261130T100000Z");
    fs::create_dir_all(place.join("out")).unwrap();
    fs::write(place.join("out").join("model.pt"), "weights").unwrap();
    fs::write(place.join(MANIFEST), "{}").unwrap();
    (home, to, place)
}

#[test]
fn a_copy_of_ours_is_deleted_and_nothing_beside_it() {
    let (_home, to, place) = folder();
    let beside = place.with_file_name("20261130T110000Z");
    fs::create_dir_all(&beside).unwrap();
    delete(&copy(&to, &place)).unwrap();
    assert!(!place.exists() && beside.exists());
}

#[test]
fn a_folder_without_our_manifest_stays() {
    let (_home, to, place) = folder();
    fs::remove_file(place.join(MANIFEST)).unwrap();
    delete(&copy(&to, &place)).unwrap_err();
    fs::create_dir(place.join(MANIFEST)).unwrap();
    delete(&copy(&to, &place)).unwrap_err();
    assert!(place.join("out").join("model.pt").exists());
}

#[test]
fn what_is_not_below_the_folder_of_copies_stays() {
    let (home, to, _) = folder();
    let elsewhere = home.path().join("thesis");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join(MANIFEST), "{}").unwrap();
    for place in [elsewhere.clone(), to.clone(), to.join("..").join("thesis")] {
        delete(&copy(&to, &place)).unwrap_err();
    }
    assert!(elsewhere.join(MANIFEST).exists());
}

#[test]
#[cfg(unix)]
fn no_link_is_followed_neither_to_it_nor_in_it() {
    let (home, to, place) = folder();
    let thesis = home.path().join("thesis");
    fs::create_dir(&thesis).unwrap();
    fs::write(thesis.join(MANIFEST), "{}").unwrap();
    let link = to.join("vast-team").join("trainer-31").join("link");
    std::os::unix::fs::symlink(&thesis, &link).unwrap();
    delete(&copy(&to, &link)).unwrap_err();
    std::os::unix::fs::symlink(&thesis, place.join("out").join("link")).unwrap();
    delete(&copy(&to, &place)).unwrap();
    assert!(!place.exists() && thesis.join(MANIFEST).exists());
}

#[test]
fn a_copy_is_gone_only_where_the_folder_of_copies_is_there() {
    let (_home, to, place) = folder();
    let copy = copy(&to, &place);
    assert_eq!(sight(&copy), Sight::There);
    fs::remove_dir_all(&place).unwrap();
    assert_eq!(sight(&copy), Sight::Gone);
    fs::remove_dir_all(&to).unwrap();
    assert_eq!(sight(&copy), Sight::OutOfReach, "a disk that is not attached, for instance");
}
