//! The operations with plugins that are closures: order, what each is told,
//! what is on the disk after each failure.

mod add;
mod check;
mod del;
mod fake;
mod gc;
mod validate;
