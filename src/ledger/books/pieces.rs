//! Times at a rate, as one line of a billable holds them: sorted, without overlap, and no two that could be
//! one.

/// A time at one rate on one set of terms. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub from: i64,
    /// After `from`.
    pub to: i64,
    pub terms: i64,
    pub rate: i64,
}

impl Piece {
    /// The part of it from one time to another; `None` when there is none.
    pub fn within(self, from: i64, to: i64) -> Option<Piece> {
        let (from, to) = (self.from.max(from), self.to.min(to));
        (from < to).then_some(Piece { from, to, ..self })
    }

    fn same_price(&self, other: &Piece) -> bool {
        (self.terms, self.rate) == (other.terms, other.rate)
    }
}

/// Sorted pieces with those made one that follow each other at the same price.
pub fn joined(pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if last.to == piece.from && last.same_price(&piece) => last.to = piece.to,
            _ => joined.push(piece),
        }
    }
    joined
}

/// What is there, and of one piece more only what lies beside it.
pub fn with(there: &[Piece], more: Piece) -> Vec<Piece> {
    let mut all = there.to_vec();
    let mut reached = more.from;
    for piece in there {
        all.extend(more.within(reached, piece.from));
        reached = reached.max(piece.to);
    }
    all.extend(more.within(reached, more.to));
    all.sort_unstable_by_key(|piece| piece.from);
    joined(all)
}

/// Cuts pieces at some times and changes the terms of each part.
pub fn changed<E>(
    pieces: &[Piece],
    cuts: impl IntoIterator<Item = i64>,
    mut terms: impl FnMut(&Piece) -> Result<i64, E>,
) -> Result<Vec<Piece>, E> {
    let mut cuts: Vec<i64> = cuts.into_iter().collect();
    cuts.sort_unstable();
    let mut parts = Vec::new();
    for piece in pieces {
        let mut from = piece.from;
        let inner = cuts.iter().copied().filter(|cut| piece.from < *cut && *cut < piece.to);
        for to in inner.chain([piece.to]) {
            if from < to {
                let part = Piece { from, to, ..*piece };
                parts.push(Piece { terms: terms(&part)?, ..part });
                from = to;
            }
        }
    }
    Ok(joined(parts))
}

/// What has to be taken away and what to be added where one list differs from another.
pub fn differences(old: &[Piece], new: &[Piece]) -> (Vec<Piece>, Vec<Piece>) {
    (beyond(old, new), beyond(new, old))
}

/// The parts of pieces that another list does not have at the same price.
fn beyond(pieces: &[Piece], other: &[Piece]) -> Vec<Piece> {
    let mut parts = Vec::new();
    let mut others = other.iter().peekable();
    for piece in pieces {
        let mut from = piece.from;
        while others.next_if(|other| other.to <= piece.from).is_some() {}
        for same in others.clone().take_while(|other| other.from < piece.to).filter(|other| other.same_price(piece)) {
            parts.extend(piece.within(from, same.from));
            from = same.to.max(from);
        }
        parts.extend(piece.within(from, piece.to));
    }
    parts
}

/// Sorted intervals that may overlap, as their union.
pub fn union(mut intervals: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    intervals.sort_unstable();
    let mut union: Vec<(i64, i64)> = Vec::new();
    for (from, to) in intervals {
        match union.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => union.push((from, to)),
        }
    }
    union
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(from: i64, to: i64, rate: i64) -> Piece {
        Piece { from, to, terms: 1, rate }
    }

    #[test]
    fn what_is_there_is_never_doubled_and_what_goes_on_is_one() {
        let there = [piece(10, 20, 1), piece(30, 40, 2)];
        assert_eq!(with(&there, piece(5, 45, 2)), [piece(5, 10, 2), piece(10, 20, 1), piece(20, 45, 2)]);
        assert_eq!(with(&there, piece(12, 18, 2)), there);
        assert_eq!(with(&[], piece(1, 2, 1)), [piece(1, 2, 1)]);
    }

    #[test]
    fn only_what_differs_is_taken_and_added() {
        let (old, new) = ([piece(0, 10, 1), piece(10, 20, 2)], [piece(0, 15, 1), piece(15, 20, 2)]);
        assert_eq!(differences(&old, &new), (vec![piece(10, 15, 2)], vec![piece(10, 15, 1)]));
        assert_eq!(differences(&old, &old), (vec![], vec![]));
        assert_eq!(differences(&old, &[]), (old.to_vec(), vec![]));
    }

    #[test]
    fn a_change_cuts_and_what_stays_the_same_is_one_again() {
        let terms = |part: &Piece| Ok::<_, ()>(if part.from < 5 { 2 } else { part.terms });
        let changed = changed(&[piece(0, 10, 1), piece(10, 20, 1)], [5, 12], terms).unwrap();
        assert_eq!(changed, [Piece { terms: 2, ..piece(0, 5, 1) }, piece(5, 20, 1)]);
    }

    #[test]
    fn times_that_touch_are_one() {
        assert_eq!(union(vec![(5, 7), (0, 2), (2, 4), (6, 9)]), [(0, 4), (5, 9)]);
    }
}
