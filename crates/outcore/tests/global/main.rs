//! What ranks do to one another without all of them taking part.

mod apart;
mod procedure_call;
