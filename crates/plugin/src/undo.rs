//! The undo stack of one ADD: what was done is undone in reverse order when
//! a later step fails or panics.

use podwire_spec::error::Error;

type Step<'a> = (String, Box<dyn FnOnce() -> Result<(), Error> + 'a>);

/// Steps that take back what an ADD has done so far.
///
/// The framework runs them, last first, when the plugin returns an error or
/// panics; a plugin that succeeds forgets them.
#[derive(Default)]
pub struct Undo<'a> {
    steps: Vec<Step<'a>>,
}

impl<'a> Undo<'a> {
    /// An empty stack.
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers how to take back what was just done. `what` names it for
    /// the log: `address 10.1.0.2 of network n1`.
    pub fn push(&mut self, what: impl Into<String>, step: impl FnOnce() -> Result<(), Error> + 'a) {
        self.steps.push((what.into(), Box::new(step)));
    }

    /// Takes everything back, last first. A step that fails is logged and the
    /// others still run: the DEL that follows a failed ADD tries it again.
    pub fn unwind(&mut self) {
        while let Some((what, step)) = self.steps.pop() {
            if let Err(error) = step() {
                log::warn!("could not take back {what}: {error}");
            }
        }
    }

    /// The work is done: nothing is to be taken back any more.
    pub fn forget(&mut self) {
        self.steps.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn steps_are_undone_last_first_even_when_one_fails() {
        let done = RefCell::new(Vec::new());
        let mut undo = Undo::new();
        undo.push("first", || {
            done.borrow_mut().push(1);
            Ok(())
        });
        undo.push("second", || {
            done.borrow_mut().push(2);
            Err(Error::internal("no"))
        });
        undo.push("third", || {
            done.borrow_mut().push(3);
            Ok(())
        });
        undo.unwind();
        assert_eq!(*done.borrow(), [3, 2, 1]);
    }

    #[test]
    fn a_finished_add_undoes_nothing() {
        let mut undo = Undo::new();
        undo.push("never", || panic!("must not run"));
        undo.forget();
        undo.unwind();
    }
}
