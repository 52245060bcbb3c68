//! Git's wire protocol, as far as reading repositories needs it: versions 0 and 2, fetching only.
//!
//! libgit2 supports only version 0, which lists every ref of a remote on every connection, and it cannot
//! leave out files (`filter`). Its HTTP does not know mu's rules for tokens and redirects. Its transports are
//! global, and registering one is unsafe. So mu implements the conversation itself, and libgit2 does what it
//! is good at: packs and objects. Nothing here knows how bytes reach the server.

mod fetch;
mod handshake;
mod pace;
mod packet;
mod refs;

pub(crate) use self::fetch::{Boundary, Depth, FetchRequest, PackReader};
pub(crate) use self::handshake::{Capabilities, Handshake};
pub(crate) use self::pace::{Pace, Paced};
pub(crate) use self::packet::{LONGEST_LISTING, Packet, PacketReader, PacketWriter, WireError};
pub(crate) use self::refs::{Advertisement, Ref, read_listing, write_listing_request};
