//! JSON as the protocol uses it: one object, borrowed, nothing lost.
//!
//! A plugin owns only some keys of the object it is given; everything else
//! goes on unchanged, numbers of any size included. So an [`Object`] keeps the
//! entries as they stand in the text, in order, and its getters decode what is
//! asked for. They read as the Go implementation reads (facts the field
//! depends on): keys without regard to case, the last of equal keys, `null` as
//! absent, unknown keys ignored.
//!
//! Every failure names the JSON path, the value found and the type wanted:
//! `ipam.ranges[0][1].subnet: expected a string, found 7`.
//!
//! ```
//! use podwire_spec::json::{Editor, Object};
//!
//! let object = Object::parse(r#"{"Bridge":"cni0","id":18446744073709551615}"#)?;
//! assert_eq!(object.string("bridge")?.as_deref(), Some("cni0"));
//!
//! let mut editor = Editor::new(&object);
//! editor.set_string("name", "pods");
//! assert_eq!(editor.finish(), r#"{"Bridge":"cni0","id":18446744073709551615,"name":"pods"}"#);
//! # Ok::<(), podwire_spec::error::Error>(())
//! ```

mod editor;
mod object;
mod syntax;
mod value;
mod writer;

pub use editor::Editor;
pub use object::Object;
pub use syntax::{Position, SyntaxError, decode_text};
pub use value::{Integer, Kind, Value};
pub use writer::{Writer, compact};
