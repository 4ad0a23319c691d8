use super::*;

#[tokio::test]
async fn rel_7_the_inbox_is_bounded() {
    let home = Home::new();
    let db = home.open();
    let bounded = |second| NewInbox { max_bytes: 8, max_pending: 2, ..event(second) };
    let refused = db.journal(NewInbox { payload: "123456789".to_owned(), ..bounded(0) }).await;
    assert!(matches!(refused, Err(DbError::TooLarge { size: 9, limit: 8 })), "{refused:?}");
    let first = bounded(1);
    let done = join_all([db.journal(first.clone()), db.journal(bounded(2)), db.journal(bounded(3))]).await;
    assert!(matches!(done[..], [Ok(()), Ok(()), Err(DbError::Overloaded { pending: 2 })]), "{done:?}");
    db.finish(first.id, "routed").await.unwrap();
    db.journal(bounded(4)).await.unwrap();
    let left: Vec<Timestamp> = db.unfinished().await.unwrap().into_iter().map(|row| row.received_at).collect();
    assert_eq!(left, [at(2), at(4)]);
    assert!(matches!(db.finish(EventId::generate(), "routed").await, Err(DbError::NoSuchEvent(_))));
}

#[tokio::test]
async fn adm_step_2_a_key_is_one_events_until_it_is_given_up() {
    let home = Home::new();
    let db = home.open();
    let [one, other] = [event(1), event(2)];
    let (first, second) = (one.id, other.id);
    let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let duplicate = |key: &str, event| KeyClaim::Duplicate { key: key.to_owned(), event };
    assert!(matches!(db.claim_keys(first, keys(&["a"])).await, Err(DbError::NoSuchEvent(_))));
    db.journal(one).await.unwrap();
    db.journal(other).await.unwrap();

    assert_eq!(db.claim_keys(first, keys(&["a", "b"])).await.unwrap(), KeyClaim::Fresh);
    // After a crash the same event is taken up again.
    assert_eq!(db.claim_keys(first, keys(&["b", "a", "c"])).await.unwrap(), KeyClaim::Fresh);
    assert_eq!(db.claim_keys(second, keys(&["z", "b"])).await.unwrap(), duplicate("b", first));
    db.settle_keys(first, false).await.unwrap();
    assert_eq!(db.claim_keys(second, keys(&["z", "b"])).await.unwrap(), KeyClaim::Fresh);
    // The claim that failed held nothing of what it asked for.
    assert_eq!(db.claim_keys(first, keys(&["a", "c"])).await.unwrap(), KeyClaim::Fresh);

    db.conclude(second, "routed", true).await.unwrap();
    assert_eq!(db.claim_keys(first, keys(&["z"])).await.unwrap(), duplicate("z", second));
    // What was done stays done.
    db.settle_keys(second, false).await.unwrap();
    assert_eq!(db.claim_keys(first, keys(&["z"])).await.unwrap(), duplicate("z", second));
    assert_eq!(db.unfinished().await.unwrap().len(), 1);
}

#[tokio::test]
async fn adm_step_2_of_many_claims_at_once_one_is_fresh() {
    let home = Home::new();
    let db = home.open();
    let rows: Vec<NewInbox> = (0..20).map(event).collect();
    join_all(rows.iter().map(|row| db.journal(row.clone()))).await;
    let claims = join_all(rows.iter().map(|row| db.claim_keys(row.id, vec!["delivery:x".to_owned()]))).await;
    let fresh = claims.iter().filter(|claim| matches!(claim, Ok(KeyClaim::Fresh))).count();
    let duplicates = claims.iter().filter(|claim| matches!(claim, Ok(KeyClaim::Duplicate { .. }))).count();
    assert_eq!((fresh, duplicates), (1, 19));
}

#[tokio::test]
async fn adm_4_the_last_revision_of_a_comment_is_remembered() {
    let home = Home::new();
    let db = home.open();
    assert_eq!(db.revision("c").await.unwrap(), None);
    let revision = |updated_at, commands: &[&str]| Revision {
        updated_at,
        text_sha: "ab".to_owned(),
        commands: commands.iter().map(|word| (*word).to_owned()).collect(),
    };
    for written in [revision(None, &["start", "stop"]), revision(Some(at(7)), &[])] {
        db.record_revision("c", written.clone()).await.unwrap();
        assert_eq!(db.revision("c").await.unwrap(), Some(written));
    }
}

#[tokio::test]
async fn rpl_5_a_delivery_has_its_receipts_with_what_they_rest_on() {
    let home = Home::new();
    let db = home.open();
    let new = text_for("github:octo/hello#7", 1);
    let id = new.id;
    db.create_delivery(new.clone()).await.unwrap();
    let step = |to, reason: Option<&str>, evidence: &str, second| {
        db.transition(id, to, reason.map(str::to_owned), evidence.to_owned(), at(second))
    };
    // The same wait for the same reason is one step; another reason is another.
    for (reason, second) in [("dialog-open", 2), ("dialog-open", 3), ("copy-mode", 4)] {
        assert_eq!(step(Receipt::Queued, Some(reason), "gate", second).await.unwrap(), Moved::Yes);
    }
    db.mark_writing(id).await.unwrap();
    assert!(db.delivery(id).await.unwrap().unwrap().writing);
    // The harness's own signal comes before the runner's word.
    assert_eq!(step(Receipt::Submitted, None, "hook", 5).await.unwrap(), Moved::Yes);
    assert_eq!(step(Receipt::Delivered, None, "tmux", 6).await.unwrap(), Moved::Already);
    let refused = step(Receipt::Queued, None, "host", 7).await;
    let expected = format!("delivery {id} is submitted; it cannot become queued");
    assert_eq!(refused.unwrap_err().to_string(), expected);
    assert!(matches!(db.mark_writing(id).await, Err(DbError::Impossible { .. })));
    step(Receipt::Answered, None, "hook", 8).await.unwrap();

    let row = db.delivery(id).await.unwrap().unwrap();
    assert_eq!((row.receipt, row.writing, row.reason, row.changed_at), (Receipt::Answered, false, None, at(8)));
    assert_eq!((row.target, row.text, row.actor, row.event), (new.target, new.text, new.actor, new.event));
    let drawn: Vec<String> = row
        .history
        .iter()
        .map(|e| format!("{} {} {} {}", e.at.as_second(), e.receipt, e.evidence, e.reason.as_deref().unwrap_or("-")))
        .collect();
    let expected = [
        "1 queued host -",
        "2 queued gate dialog-open",
        "4 queued gate copy-mode",
        "5 submitted hook -",
        "8 answered hook -",
    ];
    assert_eq!(drawn, expected);
    assert_eq!(db.delivery(DeliveryId::generate()).await.unwrap(), None);
    let unknown = db.transition(DeliveryId::generate(), Receipt::Failed, None, String::new(), at(9)).await;
    assert!(matches!(unknown, Err(DbError::NoSuchDelivery(_))));
}

#[tokio::test]
async fn del_7_a_delivery_that_was_given_up_comes_back_only_by_proof_that_it_was_written() {
    let home = Home::new();
    let db = home.open();
    for (path, comes_back) in [(vec![Receipt::Failed], false), (vec![Receipt::Delivered, Receipt::Failed], true)] {
        let new = text_for("t", 1);
        let id = new.id;
        db.create_delivery(new).await.unwrap();
        let step = |to| db.transition(id, to, None, "test".to_owned(), at(2));
        for to in path {
            step(to).await.unwrap();
        }
        assert!(matches!(step(Receipt::Queued).await, Err(DbError::Impossible { .. })));
        assert_eq!(step(Receipt::Submitted).await.is_ok(), comes_back);
    }
}

#[tokio::test]
async fn del_7_a_wait_does_not_make_a_text_look_unwritten() {
    let home = Home::new();
    let db = home.open();
    let new = text_for("t", 1);
    let id = new.id;
    db.create_delivery(new).await.unwrap();
    db.mark_writing(id).await.unwrap();
    db.note_wait(id, "dialog-open".to_owned(), at(2)).await.unwrap();
    let row = db.delivery(id).await.unwrap().unwrap();
    assert_eq!((row.receipt, row.writing, row.reason.as_deref()), (Receipt::Queued, true, Some("dialog-open")));
    db.clear_writing(id).await.unwrap();
    db.note_wait(id, "copy-mode".to_owned(), at(3)).await.unwrap();
    assert!(!db.delivery(id).await.unwrap().unwrap().writing);
}

#[tokio::test]
async fn ses_1_what_waits_for_a_session_keeps_its_order_through_holds() {
    let home = Home::new();
    let db = home.open();
    let texts: Vec<NewDelivery> = (0..6).map(|n| text_for(if n % 2 == 0 { "even" } else { "odd" }, n)).collect();
    for text in &texts {
        db.create_delivery(text.clone()).await.unwrap();
    }
    db.mark_writing(texts[0].id).await.unwrap();
    // Provably absent after a crash: delivered again under the same id, in its old place.
    let step = |id, to| db.transition(id, to, None, "transcript".to_owned(), at(9));
    step(texts[0].id, Receipt::Uncertain).await.unwrap();
    step(texts[0].id, Receipt::Queued).await.unwrap();
    step(texts[2].id, Receipt::Delivered).await.unwrap();
    let ids = |rows: Vec<DeliveryRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    let pick = |which: &[usize]| which.iter().map(|n| texts[*n].id).collect::<Vec<_>>();
    assert_eq!(ids(db.queued("even").await.unwrap()), pick(&[0, 4]));
    assert_eq!(db.queued_count("even").await.unwrap(), 2);
    assert_eq!(ids(db.open_deliveries().await.unwrap()), pick(&[0, 1, 3, 4, 5]));

    let list = |target: Option<&str>, receipt, limit| {
        db.deliveries(DeliveryFilter { target: target.map(str::to_owned), receipt, limit })
    };
    assert_eq!(ids(list(None, None, 2).await.unwrap()), pick(&[5, 4]));
    assert_eq!(ids(list(Some("even"), None, 50).await.unwrap()), pick(&[4, 2, 0]));
    assert_eq!(ids(list(Some("even"), Some(Receipt::Delivered), 50).await.unwrap()), pick(&[2]));
    assert_eq!(ids(list(None, None, 0).await.unwrap()), []);
}

#[tokio::test]
async fn a_lease_has_one_holder_and_a_number_that_only_grows() {
    let home = Home::new();
    let db = home.open();
    let first = db.acquire_lease("loops", "one", at(0), at(10)).await.unwrap().unwrap();
    assert_eq!(db.acquire_lease("loops", "two", at(9), at(20)).await.unwrap(), None);
    let renewed = db.renew_lease(&first, at(30)).await.unwrap();
    assert_eq!(db.acquire_lease("loops", "two", at(29), at(50)).await.unwrap(), None);

    let second = db.acquire_lease("loops", "two", at(30), at(50)).await.unwrap().unwrap();
    assert!(second.fence > first.fence);
    assert!(matches!(db.renew_lease(&renewed, at(60)).await, Err(DbError::LeaseLost { .. })));
    db.release_lease(&renewed).await.unwrap();
    assert_eq!(db.acquire_lease("loops", "one", at(31), at(60)).await.unwrap(), None, "the second still holds it");
    db.release_lease(&second).await.unwrap();
    assert!(matches!(db.renew_lease(&second, at(60)).await, Err(DbError::LeaseLost { .. })));
    let third = db.acquire_lease("loops", "one", at(31), at(60)).await.unwrap().unwrap();
    assert!(third.fence > second.fence);
}

#[tokio::test]
async fn rel_5_what_is_long_settled_is_forgotten_and_nothing_else() {
    let home = Home::new();
    let db = home.open();
    let rows: Vec<NewInbox> = (0..600).map(event).collect();
    join_all(rows.iter().map(|row| db.journal(row.clone()))).await;
    db.claim_keys(rows[0].id, vec!["old".to_owned()]).await.unwrap();
    join_all(rows[..500].iter().map(|row| db.conclude(row.id, "routed", true))).await;
    let texts: Vec<NewDelivery> = (0..4).map(|n| text_for("t", n)).collect();
    for (text, to) in texts.iter().zip([Receipt::Queued, Receipt::Uncertain, Receipt::Answered, Receipt::Failed]) {
        db.create_delivery(text.clone()).await.unwrap();
        db.transition(text.id, to, None, "test".to_owned(), text.at).await.unwrap();
    }
    let pruned = db.prune(at(400)).await.unwrap();
    assert_eq!(pruned, Pruned { events: 400, deliveries: 2 });
    assert_eq!(db.pending_count().await.unwrap(), 100);
    let left = db.deliveries(DeliveryFilter { target: None, receipt: None, limit: 9 }).await.unwrap();
    assert_eq!(left.into_iter().map(|row| row.id).collect::<Vec<_>>(), [texts[1].id, texts[0].id]);
    assert_eq!(db.claim_keys(rows[599].id, vec!["old".to_owned()]).await.unwrap(), KeyClaim::Fresh);
    assert_eq!(db.prune(at(400)).await.unwrap(), Pruned::default());
}
