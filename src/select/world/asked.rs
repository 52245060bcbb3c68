//! Requirements as they are met: each has a number, and what it accepts is found out once.
//!
//! The same few requirements are met again and again, and comparing them means comparing texts; whoever walks the graph
//! keeps numbers.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::World;
use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable};
use crate::select::positions::PositionSet;

/// The number of a requirement in its world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::select) struct Ask(usize);

/// A set of numbers.
#[derive(Debug, Default)]
pub(in crate::select) struct AskSet(Vec<bool>);

impl AskSet {
    /// Puts a number in; says whether it was not there.
    pub(in crate::select) fn insert(&mut self, Ask(number): Ask) -> bool {
        if self.0.len() <= number {
            self.0.resize(number + 1, false);
        }
        !std::mem::replace(&mut self.0[number], true)
    }
}

/// All requirements that were met.
#[derive(Debug, Default)]
pub(super) struct Asked {
    numbers: FxHashMap<Arc<Requirement>, Ask>,
    /// The same by where the requirement is in memory; most are shared by all who ask for them.
    by_address: FxHashMap<usize, Ask>,
    met: Vec<Met>,
    by_version: FxHashMap<(usize, Position), Rc<[Ask]>>,
}

/// A requirement, and what is known of it.
#[derive(Debug)]
struct Met {
    requirement: Arc<Requirement>,
    /// Whether the workspace itself has the package.
    is_own: bool,
    answer: Option<Answer>,
}

#[derive(Debug)]
struct Answer {
    place: usize,
    accepted: PositionSet,
    /// The candidate that the minimal strategy takes it for, if that was asked.
    least: Option<Option<Position>>,
}

impl Asked {
    /// Forgets what requirements accept, because there are other candidates since.
    pub(super) fn forget_answers(&mut self) {
        self.met.iter_mut().for_each(|met| met.answer = None);
    }
}

impl World<'_> {
    /// The number of a requirement.
    pub(in crate::select) fn ask_for(&mut self, requirement: &Requirement) -> Ask {
        match self.asked.numbers.get(requirement) {
            Some(&known) => known,
            None => self.number(Arc::new(requirement.clone())),
        }
    }

    /// Gives a requirement that was not met before its number.
    fn number(&mut self, requirement: Arc<Requirement>) -> Ask {
        let ask = Ask(self.asked.met.len());
        let is_own = self.request.is_own(&requirement.id);
        self.asked.numbers.insert(Arc::clone(&requirement), ask);
        self.asked.by_address.insert(Arc::as_ptr(&requirement).addr(), ask);
        self.asked.met.push(Met { requirement, is_own, answer: None });
        ask
    }

    /// The requirement with a number.
    pub(in crate::select) fn requirement(&self, ask: Ask) -> &Arc<Requirement> {
        &self.asked.met[ask.0].requirement
    }

    /// Whether the workspace itself has what is used for the package that is asked for.
    pub(in crate::select) fn is_own(&self, ask: Ask) -> bool {
        self.asked.met[ask.0].is_own
    }

    /// How many versions were looked at for what they require.
    pub(super) fn versions_read(&self) -> usize {
        self.asked.by_version.len()
    }

    /// What the candidate at `position` of the package at `place` requires.
    pub(in crate::select) fn asks_of(
        &mut self,
        place: usize,
        position: Position,
    ) -> Result<Rc<[Ask]>, Unavailable> {
        if let Some(known) = self.asked.by_version.get(&(place, position)) {
            return Ok(Rc::clone(known));
        }
        let requirements = self.read_requirements(place, position)?;
        let asks = requirements.iter().map(|requirement| {
            let address = Arc::as_ptr(requirement).addr();
            let known = self.asked.by_address.get(&address);
            let known = known.or_else(|| self.asked.numbers.get(requirement)).copied();
            known.unwrap_or_else(|| self.number(Arc::clone(requirement)))
        });
        let asks: Rc<[Ask]> = asks.collect();
        self.asked.by_version.insert((place, position), Rc::clone(&asks));
        Ok(asks)
    }

    /// The requirements of the candidate at `position` of the package at `place`.
    pub(in crate::select) fn requirements(
        &mut self,
        place: usize,
        position: Position,
    ) -> Result<Vec<Arc<Requirement>>, Unavailable> {
        let asks = self.asks_of(place, position)?;
        Ok(asks.iter().map(|&ask| Arc::clone(self.requirement(ask))).collect())
    }

    /// The place of the package that is asked for, and the candidates that are accepted.
    pub(in crate::select) fn answer(
        &mut self,
        ask: Ask,
    ) -> Result<(usize, &PositionSet), Unavailable> {
        if self.asked.met[ask.0].answer.is_none() {
            let requirement = Arc::clone(&self.asked.met[ask.0].requirement);
            // Something else may stand for the package.
            let requirement = self.instead(&requirement).map(Arc::new).unwrap_or(requirement);
            let place = self.find(&requirement.id)?;
            let inquiry = self.inquiry();
            let accepted = self.packages[place].accepted(inquiry, &requirement)?;
            self.note_outdated(place);
            self.asked.met[ask.0].answer = Some(Answer { place, accepted, least: None });
        }
        let answer = self.asked.met[ask.0].answer.as_ref().expect("was just found out");
        Ok((answer.place, &answer.accepted))
    }

    /// Looks whether a revision of a package was named that sets which were handed out miss.
    pub(super) fn note_outdated(&mut self, place: usize) {
        if self.packages[place].take_outdated() {
            self.is_outdated = true;
            self.asked.forget_answers();
        }
    }

    /// The place of the package that is asked for, and the candidate that `least` says it means at least; asked once.
    pub(in crate::select) fn least(
        &mut self,
        ask: Ask,
        least: impl FnOnce(&mut Self, &Requirement, usize) -> Result<Option<Position>, Unavailable>,
    ) -> Result<(usize, Option<Position>), Unavailable> {
        let (place, _) = self.answer(ask)?;
        let known = self.asked.met[ask.0].answer.as_ref().and_then(|answer| answer.least);
        if let Some(known) = known {
            return Ok((place, known));
        }
        let requirement = Arc::clone(self.requirement(ask));
        let found = least(self, &requirement, place)?;
        if let Some(answer) = &mut self.asked.met[ask.0].answer {
            answer.least = Some(found);
        }
        Ok((place, found))
    }
}
