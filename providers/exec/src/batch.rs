//! Collects questions about single packages, and asks a plugin about several at once.
//!
//! The first caller asks for all that wait. While that question is in progress, others gather for the next
//! one.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use mu_provider::ProviderError;
use mu_provider::threads::lock;
use serde_json::Value;

type Reply = Result<Value, ProviderError>;

/// Packages that nobody has asked about yet.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    waiting: Mutex<Vec<(Value, Sender<Reply>)>>,
    /// Held while questions are taken out, so that those that arrive meanwhile are taken together.
    turn: Mutex<()>,
}

impl Batch {
    /// The answer to a question, which `ask` puts together with others, at most `most` in all. `ask` answers
    /// in their order, or says why there are no answers.
    pub(crate) fn ask(
        &self,
        question: Value,
        most: usize,
        ask: impl Fn(&[Value]) -> Result<Vec<Value>, ProviderError>,
    ) -> Reply {
        let (sender, reply) = channel();
        lock(&self.waiting).push((question, sender));
        loop {
            let turn = lock(&self.turn);
            if let Ok(reply) = reply.try_recv() {
                return reply;
            }
            let mut waiting = lock(&self.waiting);
            let count = waiting.len().min(most);
            let (questions, senders): (Vec<Value>, Vec<_>) = waiting.drain(..count).unzip();
            drop(waiting);
            if questions.is_empty() {
                // Another caller has taken it, and gets the answer.
                drop(turn);
                return reply.recv().expect("whoever takes a question answers it");
            }
            // If the plugin takes many questions at once, send one such question at a time; otherwise as many
            // as it can handle.
            let _turn = (most > 1).then_some(turn);
            let answers = ask(&questions);
            match answers {
                Ok(answers) => {
                    for (sender, answer) in senders.iter().zip(answers) {
                        let _ = sender.send(Ok(answer));
                    }
                }
                Err(error) => {
                    for sender in &senders {
                        let _ = sender.send(Err(error.clone()));
                    }
                }
            }
        }
    }
}
