//! Assigns datagrams to WHIP sessions: by a path that an authenticated check has confirmed, by the user name of a STUN
//! request, or on an unknown path by the SSRC of media, which the session then authenticates.

use headgate_whip::{Path, ssrc_of, ufrag_of};
use rustc_hash::FxHashMap;
use slotmap::SecondaryMap;
use std::collections::hash_map::Entry;

use super::keys::SessionKey;

/// Largest first byte of a STUN datagram (RFC 7983).
const STUN_LIMIT: u8 = 3;

/// The routes of one worker.
#[derive(Debug, Default)]
pub(super) struct Routes {
    by_path: FxHashMap<Path, SessionKey>,
    /// The path of the newest datagram that was found there: most are followed by others of the same client.
    newest: Option<(Path, SessionKey)>,
    by_ufrag: FxHashMap<Vec<u8>, SessionKey>,
    /// Sessions choose their SSRCs: the first one with an SSRC has it.
    by_ssrc: FxHashMap<u32, SessionKey>,
    /// The routes by session, so that they can be removed when it ends.
    of_session: SecondaryMap<SessionKey, SessionRoutes>,
}

#[derive(Debug, Default)]
struct SessionRoutes {
    ufrags: Vec<Vec<u8>>,
    paths: Vec<Path>,
    ssrcs: Vec<u32>,
}

impl Routes {
    /// The session that a datagram belongs to; `None` if it belongs to none.
    pub(super) fn find(&mut self, source: Path, datagram: &[u8]) -> Option<SessionKey> {
        let is_stun = datagram.first().is_some_and(|first| *first <= STUN_LIMIT);
        if let Some((path, session)) = self.newest
            && path == source
            && !is_stun
        {
            return Some(session);
        }
        let by_path = self.by_path.get(&source).copied();
        if by_path.is_some() && !is_stun {
            self.newest = by_path.map(|session| (source, session));
            return by_path;
        }
        // A check from a known path may name another session: the client started a new one from the same port.
        let named = ufrag_of(datagram).and_then(|name| self.by_ufrag.get(name)).copied();
        named.or(by_path).or_else(|| self.by_ssrc.get(&ssrc_of(datagram)?).copied())
    }

    /// Whether datagrams from this path belong to a session.
    pub(super) fn has(&self, path: Path) -> bool {
        self.by_path.contains_key(&path)
    }

    /// Assigns datagrams on `path` to `session`.
    pub(super) fn add(&mut self, session: SessionKey, path: Path) {
        if let Some(entry) = self.of_session.entry(session) {
            let routes = entry.or_default();
            if !routes.paths.contains(&path) {
                routes.paths.push(path);
            }
            self.by_path.insert(path, session);
            self.newest = None;
        }
    }

    /// Removes that assignment. Returns true if the path belongs to no session any more.
    pub(super) fn remove(&mut self, session: SessionKey, path: Path) -> bool {
        if let Some(routes) = self.of_session.get_mut(session) {
            routes.paths.retain(|known| *known != path);
        }
        self.forget(session, path)
    }

    /// Removes a path whose connection is closed, whichever session it belonged to.
    pub(super) fn remove_path(&mut self, path: Path) {
        self.newest = None;
        if let Some(session) = self.by_path.remove(&path)
            && let Some(routes) = self.of_session.get_mut(session)
        {
            routes.paths.retain(|known| *known != path);
        }
    }

    /// Assigns media with this SSRC on unknown paths to `session`.
    pub(super) fn add_source(&mut self, session: SessionKey, ssrc: u32) {
        if let Some(entry) = self.of_session.entry(session)
            && let Entry::Vacant(vacant) = self.by_ssrc.entry(ssrc)
        {
            vacant.insert(session);
            entry.or_default().ssrcs.push(ssrc);
        }
    }

    /// Sets the user names of `session`, replacing its previous ones.
    pub(super) fn set_ufrags(&mut self, session: SessionKey, ufrags: Vec<Vec<u8>>) {
        let Some(entry) = self.of_session.entry(session) else { return };
        let routes = entry.or_default();
        for ufrag in std::mem::replace(&mut routes.ufrags, ufrags.clone()) {
            self.by_ufrag.remove(&ufrag);
        }
        self.by_ufrag.extend(ufrags.into_iter().map(|ufrag| (ufrag, session)));
    }

    /// Removes `session`. Returns the paths that belong to no session any more.
    pub(super) fn remove_session(&mut self, session: SessionKey) -> Vec<Path> {
        let Some(routes) = self.of_session.remove(session) else { return Vec::new() };
        for ufrag in &routes.ufrags {
            self.by_ufrag.remove(ufrag);
        }
        for ssrc in &routes.ssrcs {
            self.by_ssrc.remove(ssrc);
        }
        routes.paths.into_iter().filter(|path| self.forget(session, *path)).collect()
    }

    fn forget(&mut self, session: SessionKey, path: Path) -> bool {
        let is_its_own = self.by_path.get(&path) == Some(&session);
        if is_its_own {
            self.by_path.remove(&path);
            self.newest = None;
        }
        is_its_own
    }

    /// Number of paths, user names and sessions with routes.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_path.len() + self.by_ufrag.len() + self.by_ssrc.len() + self.of_session.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotmap::SlotMap;
    use std::net::SocketAddr;

    #[test]
    fn a_path_taken_over_by_another_session_stays_with_that_session() {
        let mut keys = SlotMap::<SessionKey, ()>::with_key();
        let (a, b) = (keys.insert(()), keys.insert(()));
        let path = Path::from(SocketAddr::from(([192, 0, 2, 1], 4000)));
        let mut routes = Routes::default();
        routes.set_ufrags(a, vec![b"a".to_vec()]);
        routes.add(a, path);
        assert_eq!(routes.find(path, &[128, 96]), Some(a));
        routes.add(b, path);
        assert_eq!(routes.find(path, &[128, 96]), Some(b));
        assert!(routes.remove_session(a).is_empty());
        assert_eq!(routes.find(path, &[128, 96]), Some(b));
        assert_eq!(routes.remove_session(b), [path]);
        assert_eq!((routes.find(path, &[128, 96]), routes.len()), (None, 0));
    }
}
