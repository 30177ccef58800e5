//! Failures reach every rank.
