//! What ranks do to one another without all of them taking part: procedure
//! calls. The protocol is in the README beside this file.

mod procedure_call;

pub use procedure_call::{
    Answer, Call, Procedure, ProcedureFault, Procedures, Reply, Request, Response, ServerOptions,
};
