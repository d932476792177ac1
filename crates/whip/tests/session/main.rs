//! Whole sessions in memory on virtual time: our publisher of another make on one side, a network between that loses
//! what a test says.

mod connecting;
mod endings;
mod loss;
mod moving;
#[allow(dead_code, reason = "shared with the hostile tests")]
mod world;
