//! The form that asks what of a machine is to be brought to safety, where the config does not say.

use std::path::Path;

use providers::model::{Action, DataPlace, Identity};
use providers::text::clean;
use tui_input::Input;

use crate::rules::checkpoint::paths::{NoPath, is_within, of_ours, on_machine};
use crate::rules::checkpoint::proposals::{Proposal, Size};
use crate::rules::checkpoint::{Method, QUIET, Recipe, Trouble};

/// More paths fit no window.
pub const MOST: usize = 10;

/// How far the look at the machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    UnderWay,
    Done,
    Failed(Trouble),
}

/// A path that can be taken in or left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub proposal: Proposal,
    pub chosen: bool,
    /// Somebody typed it.
    pub typed: bool,
    /// How much it holds is being asked.
    pub measured: bool,
}

/// What is wrong with what was chosen or typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    NothingChosen,
    Path(NoPath),
    TooMany,
    /// The folder of ours is not absolute.
    NoFolder,
}

/// Where a key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The choice with this number.
    Choice(usize),
    /// The field of another path.
    Another,
    /// The field of the folder of ours.
    Folder,
}

#[derive(Clone, Debug)]
pub struct SaveForm {
    pub identity: Identity,
    /// Cleaned; the id stands in where there is none.
    pub name: String,
    /// A checkpoint alone, or a release after it.
    pub action: Action,
    /// What a release would keep.
    pub kept: Vec<DataPlace>,
    pub look: Look,
    pub choices: Vec<Choice>,
    pub at: At,
    pub another: Input,
    pub folder: Input,
    pub mistake: Option<Mistake>,
}

impl SaveForm {
    /// A form whose machine is being looked at. `folder` is one of ours.
    pub fn new(identity: Identity, name: String, action: Action, kept: Vec<DataPlace>, folder: String) -> Self {
        SaveForm {
            identity,
            name,
            action,
            kept,
            look: Look::UnderWay,
            choices: Vec::new(),
            at: At::Another,
            another: Input::default(),
            folder: Input::new(folder),
            mistake: None,
        }
    }

    /// The field that is written in; `None` on a choice.
    pub fn field(&mut self) -> Option<&mut Input> {
        match self.at {
            At::Choice(_) => None,
            At::Another => Some(&mut self.another),
            At::Folder => Some(&mut self.folder),
        }
    }

    /// Takes in what the machine was found to hold. Of it only where its biggest job works and the newest folder are
    /// chosen, and nothing again that was looked at before.
    pub fn found(&mut self, found: Vec<Proposal>) {
        let first = self.choices.iter().all(|choice| choice.typed);
        let untouched = first && self.at == At::Another && self.another.value().is_empty();
        let working = found.iter().find(|proposal| proposal.works_here).map(|proposal| proposal.path.clone());
        let newest = found.iter().max_by_key(|proposal| proposal.newest).filter(|newest| newest.newest.is_some());
        let newest = newest.map(|newest| newest.path.clone());
        self.look = Look::Done;
        for proposal in found {
            let path = Some(&proposal.path);
            match self.choices.iter().position(|choice| choice.proposal.path == proposal.path) {
                Some(at) => self.choices[at].proposal = proposal,
                None if self.choices.len() < MOST => {
                    let chosen = first && (path == working.as_ref() || path == newest.as_ref());
                    self.choices.push(Choice { proposal, chosen, typed: false, measured: false });
                }
                None => {}
            }
        }
        if untouched && !self.choices.is_empty() {
            self.at = At::Choice(0);
        }
    }

    /// Takes in how much a typed path holds.
    pub fn measured(&mut self, path: &str, size: Size) {
        for choice in self.choices.iter_mut().filter(|choice| choice.proposal.path == path) {
            (choice.proposal.size, choice.measured) = (size, false);
        }
    }

    /// Moves to the next place, or to the one before.
    pub fn step(&mut self, back: bool) {
        let choices = self.choices.len();
        let at = match self.at {
            At::Choice(at) => at,
            At::Another => choices,
            At::Folder => choices + 1,
        };
        let at = if back { at.saturating_sub(1) } else { (at + 1).min(choices + 1) };
        self.at = match at.checked_sub(choices) {
            None => At::Choice(at),
            Some(0) => At::Another,
            Some(_) => At::Folder,
        };
    }

    /// Takes the choice that is pointed at in, or out.
    pub fn toggle(&mut self) {
        if let At::Choice(at) = self.at
            && let Some(choice) = self.choices.get_mut(at)
        {
            choice.chosen = !choice.chosen;
            self.mistake = None;
        }
    }

    /// Adds the path that was typed, and says which one is to be measured; `None` when it was there or is none.
    pub fn add(&mut self) -> Option<String> {
        let path = match on_machine(clean(self.another.value()).trim()) {
            Ok(path) => path,
            Err(wrong) => {
                self.mistake = Some(Mistake::Path(wrong));
                return None;
            }
        };
        let known = self.choices.iter().position(|choice| choice.proposal.path == path);
        if known.is_none() && self.choices.len() >= MOST {
            self.mistake = Some(Mistake::TooMany);
            return None;
        }
        self.another.reset();
        if let Some(at) = known {
            self.choices[at].chosen = true;
            return None;
        }
        let proposal = Proposal { path: path.clone(), works_here: false, newest: None, size: Size::Unknown };
        self.choices.push(Choice { proposal, chosen: true, typed: true, measured: true });
        Some(path)
    }

    /// What is chosen and lies in nothing else that is.
    pub fn chosen(&self) -> impl Iterator<Item = &Proposal> {
        let chosen = || self.choices.iter().filter(|choice| choice.chosen).map(|choice| &choice.proposal);
        chosen().filter(move |one| !chosen().any(|other| one.path != other.path && is_within(&one.path, &other.path)))
    }

    /// How much of it there is in bytes, and whether that is all of it.
    pub fn sum(&self) -> (u64, bool) {
        self.chosen().fold((0, true), |(sum, whole), proposal| match proposal.size {
            Size::Bytes(bytes) => (sum.saturating_add(bytes), whole),
            Size::Unknown | Size::Missing => (sum, false),
        })
    }

    /// Where a path lies that a release leaves alone.
    pub fn kept_place(&self, path: &str) -> Option<&DataPlace> {
        self.kept.iter().find(|place| place.path.as_ref().is_some_and(|mount| is_within(path, mount)))
    }

    /// What the form says is to be done. `home` is the person's own folder.
    pub fn recipe(&self, home: Option<&Path>) -> Result<Recipe, Mistake> {
        let paths: Vec<String> = self.chosen().map(|proposal| proposal.path.clone()).collect();
        if paths.is_empty() {
            return Err(Mistake::NothingChosen);
        }
        let to = of_ours(self.folder.value().trim(), home).ok_or(Mistake::NoFolder)?;
        Ok(Recipe { name: String::new(), paths, method: Method::Copy { to }, prepare: None, quiet: QUIET })
    }
}
