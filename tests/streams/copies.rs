//! Checkpoints over real OpenSSH servers: whole ones, and links that are lost in the middle of one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use rentop::app::Event;
use rentop::app::event::WorldEvent;
use rentop::rules::checkpoint::{Job, Method, Proof, Recipe, Stage, Told, Trouble};
use rentop::rules::saga::OpId;
use rentop::rules::streams;
use rentop::runtime::Inbox;
use rentop::runtime::checkpoint::{Copies, check};
use rentop::runtime::streams::{KNOWN_HOSTS, Streams};
use rstest::rstest;
use rustix::process::Signal;

use super::super::support::stage::wait_until;
use super::super::target;
use super::{Person, Server};

const PATIENCE: Duration = Duration::from_secs(120);
const OP: OpId = OpId(1);
const FOLDER: &str = "vast-me/m1/20261130T100000Z";

/// Who copies, and what they are told.
struct Copier<'p> {
    person: &'p Person,
    copies: Copies,
    inbox: Inbox,
    number: u64,
}

impl<'p> Copier<'p> {
    fn of(person: &'p Person) -> Self {
        let (inbox, outbox) = Inbox::new();
        let streams = Streams::new(person.home.path(KNOWN_HOSTS), outbox.clone());
        let streams = streams.by(Some(person.home.path("ssh").into()));
        Copier { person, copies: Copies::new(&streams, outbox), inbox, number: 0 }
    }

    fn begin(&mut self, stage: Stage, server: &Server) {
        self.number += 1;
        let to = self.person.home.path("copies").to_str().unwrap().to_owned();
        let recipe = Recipe {
            name: "default".to_owned(),
            paths: vec![server.folder.join("out").to_str().unwrap().to_owned()],
            method: Method::Copy { to },
            prepare: None,
            quiet: SignedDuration::ZERO,
        };
        let target = target("m1", &server.at("127.0.0.1"));
        let folder = FOLDER.to_owned();
        let job = Job { op: OP, number: self.number, stage, recipe, target, folder, whole: true };
        self.copies.start(job, &tokio::runtime::Handle::current());
    }

    async fn end(&mut self) -> Result<Told, Trouble> {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.inbox.next()).await.expect("an end").unwrap();
            match event {
                Event::World(WorldEvent::Saving { number, .. }) if number < self.number => {}
                Event::World(WorldEvent::Saving { told: Told::Sign(_), .. }) => {}
                Event::World(WorldEvent::Saving { told: Told::Failed(trouble), .. }) => return Err(trouble),
                Event::World(WorldEvent::Saving { told, .. }) => return Ok(told),
                event => panic!("{event:?}"),
            }
        }
    }

    async fn perform(&mut self, stage: Stage, server: &Server) -> Result<Told, Trouble> {
        self.begin(stage, server);
        self.end().await
    }

    async fn proof(&mut self, server: &Server) -> Proof {
        let Told::Verified(proof) = self.perform(Stage::Verify, server).await.unwrap() else { panic!("a proof") };
        assert!(check(Path::new(&proof.place)).unwrap().is_whole());
        proof
    }

    /// How much of the file that is on its way is here.
    fn incoming(&self) -> u64 {
        let folder: PathBuf = self.person.home.path(&format!("copies/{FOLDER}.part/.incoming"));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.metadata().map_or(0, |data| data.len())).sum()
    }
}

fn results(server: &Server) {
    let out = server.folder.join("out");
    std::fs::create_dir_all(out.join("logs of run 1")).unwrap();
    for index in 0..300 {
        std::fs::write(out.join(format!("logs of run 1/{index}.txt")), format!("line {index}\n").repeat(index))
            .unwrap();
    }
    let large: Vec<u8> = (0..150_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(out.join("step-2000.pt"), large).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn a_whole_copy_is_made_and_nothing_is_left_there() {
    let person = Person::new();
    let server = Server::of(&person, "server", "Banner /etc/passwd");
    results(&server);
    let mut copier = Copier::of(&person);
    copier.perform(Stage::Prepare, &server).await.unwrap();
    copier.perform(Stage::Copy, &server).await.unwrap();
    let proof = copier.proof(&server).await;
    assert_eq!(proof.files, 301);
    wait_until("the end of all that ran there", || server.commands().is_empty());
    assert_eq!(person.home.known_hosts(), format!("rentop.vast.me.m1.0 {}\n", server.key()));
}

#[rstest]
#[case::killed(Signal::KILL, streams::Trouble::Ended)]
#[case::frozen(Signal::STOP, streams::Trouble::NoAnswer)]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn a_link_that_is_lost_in_the_middle_goes_on_where_it_was(
    #[case] signal: Signal,
    #[case] expected: streams::Trouble,
) {
    let person = Person::new();
    let mut server = Server::of(&person, "server", "");
    results(&server);
    let mut copier = Copier::of(&person);
    copier.perform(Stage::Prepare, &server).await.unwrap();
    copier.begin(Stage::Copy, &server);
    wait_until("some of it", || copier.incoming() > 20_000_000);
    server.signal(signal);
    assert_eq!(copier.end().await, Err(Trouble::Link(expected)));
    let came = copier.incoming();
    server.restart();
    copier.begin(Stage::Copy, &server);
    // It never becomes less.
    assert!(copier.incoming() >= came);
    copier.end().await.unwrap();
    assert_eq!(copier.proof(&server).await.files, 301);
}

/// SSH-01: nothing is copied from another machine at the same address.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn another_machine_at_the_address_is_not_copied() {
    let person = Person::new();
    let mut server = Server::of(&person, "server", "");
    std::fs::create_dir(server.folder.join("out")).unwrap();
    std::fs::write(server.folder.join("out/a"), "theirs").unwrap();
    let mut copier = Copier::of(&person);
    copier.perform(Stage::Prepare, &server).await.unwrap();
    server.replace();
    for stage in [Stage::Copy, Stage::Verify, Stage::Prepare] {
        let told = copier.perform(stage, &server).await;
        assert_eq!(told, Err(Trouble::Link(streams::Trouble::HostKeyChanged)), "{stage:?}");
    }
    assert!(server.commands().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn a_copy_that_is_stopped_ends_there_as_well() {
    let person = Person::new();
    let server = Server::of(&person, "server", "");
    results(&server);
    let mut copier = Copier::of(&person);
    copier.perform(Stage::Prepare, &server).await.unwrap();
    copier.begin(Stage::Copy, &server);
    wait_until("some of it", || copier.incoming() > 1_000_000);
    copier.copies.stop(OP, copier.number);
    wait_until("the end of all that ran there", || server.commands().is_empty());
}
