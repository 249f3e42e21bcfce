use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn sent(shelf: Shelf, key: &Hash) -> Sent {
    Sent {
        shelf,
        key: key.clone(),
        pipeline: "p".to_owned(),
        node: "n".to_owned(),
        record_id: "s:1".to_owned(),
        model: "openai/m".to_owned(),
        structured: "json_schema",
        max_tokens: 10,
        cost_at_most: 0.5,
    }
}

fn finished(body: &[u8]) -> Finished {
    Finished {
        state: ReplyState::Complete,
        detail: String::new(),
        status: Some(200),
        latency_ms: 3,
        input_tokens: 10,
        output_tokens: 4,
        cost: 0.25,
        body: Some(body.to_vec()),
    }
}

fn stored(store: &ReplyStore, shelf: Shelf, key: &Hash, body: &[u8]) -> i64 {
    runtime().block_on(async {
        let id = store.sent(sent(shelf, key)).await.unwrap();
        store.finished(shelf, id, finished(body)).await.unwrap();
        id
    })
}

#[test]
fn a_call_has_one_accepted_reply_and_keeps_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = ReplyStore::new(folder.path().join("replies"));
    let key = Hash::of(b"call");
    assert!(store.replies(Shelf::Open, &key).unwrap().is_empty() && store.accepted(&key).unwrap().is_none());
    assert!(!folder.path().join("replies").exists(), "looking makes nothing");
    let first = stored(&store, Shelf::Open, &key, b"one");
    let second = stored(&store, Shelf::Open, &key, b"two");
    runtime().block_on(async {
        store.accept(Shelf::Open, &key, first).await.unwrap();
        store.accept(Shelf::Open, &key, second).await.unwrap();
    });
    assert_eq!(store.accepted(&key).unwrap(), Some(Hash::of(b"two")));
    let bodies: Vec<_> = store.replies(Shelf::Open, &key).unwrap().into_iter().map(|reply| reply.body).collect();
    assert_eq!(bodies, [b"two", b"one"], "the newest first");
    assert!(store.replies(Shelf::Credentialed, &key).unwrap().is_empty(), "each class of access is apart");
    let spending = store.spending("p", None).unwrap();
    assert_eq!((spending[0].requests, spending[0].cost, spending[0].output_tokens), (2, 0.5, 8));
    assert_eq!(store.spending("p", Some("s:2")).unwrap(), []);
    // The next process finds it all.
    drop(store);
    let store = ReplyStore::new(folder.path().join("replies"));
    assert_eq!(store.accepted(&key).unwrap(), Some(Hash::of(b"two")));
}

#[test]
fn a_request_of_a_process_that_died_counts_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let key = Hash::of(b"call");
    let store = ReplyStore::new(folder.path().to_owned());
    let id = runtime().block_on(store.sent(sent(Shelf::Open, &key))).unwrap();
    assert!(id > 0 && store.replies(Shelf::Open, &key).unwrap().is_empty());
    // A second store beside it sees that the first one lives.
    let other = ReplyStore::new(folder.path().to_owned());
    stored(&other, Shelf::Open, &Hash::of(b"other"), b"x");
    let states = |store: &ReplyStore| store.spending("p", None).unwrap()[0].by_state.clone();
    assert_eq!(states(&other), BTreeMap::from([("complete".to_owned(), 1), ("sent".to_owned(), 1)]));
    drop(other);
    // As a kill leaves it: the lock is gone, the name stays.
    let run = fs::list(folder.path()).unwrap().into_iter().find(|name| name.ends_with(".run")).unwrap();
    drop(store);
    std::fs::write(folder.path().join(run), "").unwrap();
    let after = ReplyStore::new(folder.path().to_owned());
    stored(&after, Shelf::Open, &key, b"y");
    assert_eq!(states(&after)["lost"], 1);
    let spending = &after.spending("p", None).unwrap()[0];
    assert_eq!(spending.cost, 0.5 + 0.25 + 0.25, "a lost request counts with what it cost at most");
}

#[test]
fn replies_leave_and_come_as_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = ReplyStore::new(folder.path().join("one"));
    let (open, text, closed) = (Hash::of(b"open"), Hash::of(b"text"), Hash::of(b"closed"));
    let id = stored(&store, Shelf::Open, &open, b"\xff\x00 no UTF-8");
    runtime().block_on(store.accept(Shelf::Open, &open, id)).unwrap();
    stored(&store, Shelf::Open, &text, b"{\"a\": 1}");
    stored(&store, Shelf::Credentialed, &closed, b"secret sentence");
    let keys = [open.clone(), text.clone(), closed.clone(), Hash::of(b"unknown")];
    for name in ["replies.jsonl", "replies.jsonl.zst"] {
        let file = folder.path().join(name);
        let written = store.export(keys.clone(), |shelf| shelf == Shelf::Open, &file).unwrap();
        assert_eq!(written, (2, 1));
        let again = folder.path().join(format!("again-{name}"));
        store.export(keys.iter().rev().cloned(), |shelf| shelf == Shelf::Open, &again).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(&again).unwrap(), "the order of keys is no matter");
        let other = ReplyStore::new(folder.path().join(format!("store-{name}")));
        assert_eq!(other.import(&file, false).unwrap(), Imported { added: 2, known: 0, kept_ours: 0 });
        assert_eq!(other.import(&file, false).unwrap(), Imported { added: 0, known: 2, kept_ours: 0 });
        assert_eq!(other.accepted(&open).unwrap(), store.accepted(&open).unwrap());
        assert_eq!(other.replies(Shelf::Open, &text).unwrap()[0].body, b"{\"a\": 1}");
        assert!(other.accepted(&text).unwrap().is_none());
    }
    let plain = std::fs::read_to_string(folder.path().join("replies.jsonl")).unwrap();
    assert!(!plain.contains("secret sentence"));

    // A call with another accepted reply keeps it, unless told otherwise.
    let other = ReplyStore::new(folder.path().join("other"));
    let id = stored(&other, Shelf::Open, &open, b"ours");
    runtime().block_on(other.accept(Shelf::Open, &open, id)).unwrap();
    let file = folder.path().join("replies.jsonl");
    assert_eq!(other.import(&file, false).unwrap(), Imported { added: 1, known: 0, kept_ours: 1 });
    assert_eq!(other.accepted(&open).unwrap(), Some(Hash::of(b"ours")));
    assert_eq!(other.import(&file, true).unwrap(), Imported { added: 1, known: 1, kept_ours: 0 });
    assert_eq!(other.accepted(&open).unwrap(), store.accepted(&open).unwrap());

    // A line whose bytes were changed, and a cut file, add nothing.
    std::fs::write(&file, plain.replace("\\\"a\\\": 1", "\\\"a\\\": 2")).unwrap();
    let fresh = ReplyStore::new(folder.path().join("fresh"));
    let error = format!("{:#}", fresh.import(&file, false).unwrap_err());
    assert!(error.contains("does not have the hash"), "{error}");
    std::fs::write(&file, &plain[..plain.len() - 3]).unwrap();
    let error = format!("{:#}", fresh.import(&file, false).unwrap_err());
    assert!(error.contains("it is cut"), "{error}");
    assert!(fresh.accepted(&open).unwrap().is_none(), "all of a file or nothing");
}

#[test]
fn several_stores_write_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |thread: u32| {
        let store = ReplyStore::new(folder.path().to_owned());
        for n in 0..50 {
            stored(&store, Shelf::Open, &Hash::of(format!("{thread} {n}").as_bytes()), b"body");
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || write(thread));
        }
    });
    let store = ReplyStore::new(folder.path().to_owned());
    assert_eq!(store.spending("p", None).unwrap()[0].requests, 200);
}
