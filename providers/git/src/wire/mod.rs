//! Git's wire protocol, as far as a reader of repositories needs it: versions 0 and 2, fetching only.
//!
//! libgit2 speaks version 0 alone, which lists every ref of a remote on every connection, and it cannot leave out
//! files (`filter`). Its HTTP does not know mu's rules for tokens and redirects; its transports are global, and
//! registering one is unsafe. So the conversation is held here, and libgit2 gets what it is good at: packs and objects.
//! Nothing here knows how bytes reach the server.

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
