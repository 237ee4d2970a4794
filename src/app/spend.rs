//! The Spend view: which period it shows, and what the books answered about it.

use crate::rules::spend::{Answer, Question};

/// What the Spend view of one screen shows.
#[derive(Clone, Debug, Default)]
pub struct SpendView {
    /// What the books were last asked.
    asked: Option<Question>,
    /// Their latest answer.
    pub answer: Option<Answer>,
}

impl SpendView {
    /// Takes in an answer, unless something else was asked meanwhile.
    pub fn answered(&mut self, answer: Answer) {
        if self.asked.as_ref().is_none_or(|asked| *asked == answer.question) {
            self.answer = Some(answer);
        }
    }
}
