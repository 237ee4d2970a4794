use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::app::action::{Code, Key, Mouse, MouseKind};
use crate::app::event::ViewEvent;
use crate::runtime::terminal::Keys;

/// What these pieces mean, as the screen hears it; after each piece nothing comes for a while.
fn heard(pieces: &[&[u8]]) -> (Vec<ViewEvent>, Vec<Answer>) {
    let (mut parser, mut keys) = (Parser::default(), Keys::default());
    let (mut events, mut answers) = (Vec::new(), Vec::new());
    let now = std::time::Instant::now();
    for piece in pieces {
        parser.take(piece);
        if parser.patience().is_some() {
            parser.give_up();
        }
        while let Some(input) = parser.pop() {
            match input {
                Input::Event(event) => events.extend(keys.translate(event, now)),
                Input::Answer(answer) => answers.push(answer),
            }
        }
    }
    (events, answers)
}

#[track_caller]
fn check(bytes: &[u8], events: &[ViewEvent], answers: &[Answer]) {
    assert_eq!(heard(&[bytes]), (events.to_vec(), answers.to_vec()), "{:?}", String::from_utf8_lossy(bytes));
}

fn alt(code: Code) -> Key {
    Key { alt: true, ..Key::plain(code) }
}

fn repeated(key: Key) -> Key {
    Key { repeat: true, ..key }
}

/// Keys as terminals have always sent them.
#[rstest]
#[case(b"s", Key::char('s'))]
#[case(b"X", Key::char('X'))]
#[case("é".as_bytes(), Key::char('é'))]
#[case("机".as_bytes(), Key::char('机'))]
#[case(b"\r", Key::plain(Code::Enter))]
#[case(b"\t", Key::plain(Code::Tab))]
#[case(b"\x7f", Key::plain(Code::Backspace))]
#[case(b"\x08", Key::ctrl('h'))]
#[case(b"\x03", Key::ctrl('c'))]
#[case(b"\x00", Key::ctrl(' '))]
#[case(b"\x1f", Key::ctrl('7'))]
#[case(b"\x1b", Key::plain(Code::Esc))]
#[case(b"\x1bx", alt(Code::Char('x')))]
#[case(b"\x1b[", alt(Code::Char('[')))]
#[case(b"\x1b]", alt(Code::Char(']')))]
#[case(b"\x1bP", alt(Code::Char('P')))]
#[case(b"\x1bO", alt(Code::Char('O')))]
#[case(b"\x1b[A", Key::plain(Code::Up))]
#[case(b"\x1bOB", Key::plain(Code::Down))]
#[case(b"\x1b[1;5C", Key { ctrl: true, ..Key::plain(Code::Right) })]
#[case(b"\x1b[1;2D", Key::plain(Code::Left))]
#[case(b"\x1b[Z", Key::plain(Code::BackTab))]
#[case(b"\x1b[15~", Key::plain(Code::F(5)))]
#[case(b"\x1b[[E", Key::plain(Code::F(5)))]
#[case(b"\x1bOP", Key::plain(Code::F(1)))]
#[case(b"\x1b[24~", Key::plain(Code::F(12)))]
#[case(b"\x1b[3~", Key::plain(Code::Delete))]
#[case(b"\x1b[5~", Key::plain(Code::PageUp))]
#[case(b"\x1b[H", Key::plain(Code::Home))]
#[case(b"\x1b[4~", Key::plain(Code::End))]
fn keys_of_every_terminal(#[case] bytes: &[u8], #[case] key: Key) {
    check(bytes, &[ViewEvent::Key(key)], &[]);
}

/// TUI-05: keys of the kitty protocol.
#[rstest]
#[case(b"\x1b[115u", Key::char('s'))]
#[case(b"\x1b[115;1:1u", Key::char('s'))]
#[case(b"\x1b[115;1:2u", repeated(Key::char('s')))]
#[case(b"\x1b[115;129u", Key::char('s'))]
#[case(b"\x1b[115;2u", Key::char('S'))]
#[case(b"\x1b[115:83;2u", Key::char('S'))]
#[case(b"\x1b[115;65u", Key::char('S'))]
#[case(b"\x1b[115;66u", Key::char('s'))]
#[case(b"\x1b[49:33;2u", Key::char('!'))]
#[case(b"\x1b[49:33;4u", alt(Code::Char('!')))]
#[case(b"\x1b[49;65u", Key::char('1'))]
#[case(b"\x1b[99;5u", Key::ctrl('c'))]
#[case(b"\x1b[99;69u", Key::ctrl('c'))]
#[case(b"\x1b[1089::99;5u", Key::ctrl('c'))]
#[case(b"\x1b[1089;5u", Key::ctrl('с'))]
#[case(b"\x1b[27u", Key::plain(Code::Esc))]
#[case(b"\x1b[13;1:1u", Key::plain(Code::Enter))]
#[case(b"\x1b[9;2u", Key::plain(Code::BackTab))]
#[case(b"\x1b[1;1:2B", repeated(Key::plain(Code::Down)))]
#[case(b"\x1b[6;1:1~", Key::plain(Code::PageDown))]
#[case(b"\x1b[57400u", Key::char('1'))]
#[case(b"\x1b[57419u", Key::plain(Code::Up))]
// With a key that other programs own it is another key, whatever it is.
#[case(b"\x1b[120;9u", Key::plain(Code::Other))]
#[case(b"\x1b[120;17u", Key::plain(Code::Other))]
#[case(b"\x1b[120;33u", Key::plain(Code::Other))]
#[case(b"\x1b[1;9B", Key::plain(Code::Other))]
#[case(b"\x1b[99:67;6u", Key { ctrl: true, ..Key::plain(Code::Other) })]
fn keys_of_the_kitty_protocol(#[case] bytes: &[u8], #[case] key: Key) {
    check(bytes, &[ViewEvent::Key(key)], &[]);
}

/// What is no key for us is nothing, however much it looks like several.
#[rstest]
#[case(b"\x1b[115;1:3u")]
#[case(b"\x1b[1;1:3B")]
#[case(b"\x1b[57441;2u")]
#[case(b"\x1b[1114112u")]
#[case(b"\x1b[99999999999u")]
#[case(b"\x1b[I")]
#[case(b"\x1b[O")]
#[case(b"\x1b[201~")]
#[case(b"\x1b[>1;4000;0c")]
#[case(b"\x1b[?2026;2$y")]
#[case(b"\x1b[8;24;80t")]
#[case(b"\x1b[0n")]
#[case(b"\x1bP>|xsuq 3.4\x1b\\")]
#[case(b"\x1bP1+r544e=78\x1b\\")]
#[case(b"\x1b_Gi=31;OK\x1b\\")]
#[case(b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\")]
#[case(b"\x1b]11;red\x07")]
#[case(b"\x1b]11;#xyzxyz\x07")]
#[case(b"\x1b]11;rgb:/1/1\x07")]
#[case(b"\x1b]11;rgb:12345/1/1\x07")]
#[case(b"\x1b]4;1;rgb:0000/0000/0000\x07")]
#[case(b"\x1b]52;c;c3VxeA==\x07")]
#[case(b"\x1b[<35;10;10M")]
#[case(b"\x1b[<2;10;10M")]
#[case(b"\x1b[<0;70000;10M")]
#[case(b"\x1b[M !!")]
#[case(b"\x1b[M\x00\x00\x00")]
#[case(b"\x1bOx")]
#[case(b"\x80\xff")]
fn what_is_no_key_is_nothing(#[case] bytes: &[u8]) {
    // The last one is a press in the corner, in the oldest form.
    let corner = Mouse { kind: MouseKind::Press, column: 0, row: 0 };
    let events = if bytes == b"\x1b[M !!" { vec![ViewEvent::Mouse(corner)] } else { vec![] };
    check(bytes, &events, &[]);
}

#[rstest]
#[case(b"\x1b[?0u", Answer::Keyboard)]
#[case(b"\x1b[?62;22;52c", Answer::Attributes)]
#[case(b"\x1b[1;31R", Answer::Cursor { row: 1, column: 31 })]
#[case(b"\x1b]11;rgb:ffff/8080/0000\x1b\\", Answer::Background([255, 128, 0]))]
#[case(b"\x1b]11;rgb:ff/80/00\x07", Answer::Background([255, 128, 0]))]
#[case(b"\x1b]11;#fff\x07", Answer::Background([255, 255, 255]))]
fn answers_are_told_from_keys(#[case] bytes: &[u8], #[case] answer: Answer) {
    check(bytes, &[], &[answer]);
}

#[rstest]
#[case(b"\x1b[<0;10;5M", MouseKind::Press, 9, 4)]
#[case(b"\x1b[<0;10;5m", MouseKind::Release, 9, 4)]
#[case(b"\x1b[<64;501;501M", MouseKind::WheelUp, 500, 500)]
#[case(b"\x1b[<65;1;1M", MouseKind::WheelDown, 0, 0)]
#[case(b"\x1b[M#*%", MouseKind::Release, 9, 4)]
fn the_mouse(#[case] bytes: &[u8], #[case] kind: MouseKind, #[case] column: u16, #[case] row: u16) {
    check(bytes, &[ViewEvent::Mouse(Mouse { kind, column, row })], &[]);
}

/// TUI-04: a paste is one text, also when it comes in pieces long after one another.
#[test]
fn a_paste_is_one_text() {
    let (events, _) = heard(&[b"\x1b[200~rel", b"ease x\n\x1b[2", b"01~s"]);
    assert_eq!(events, [ViewEvent::Paste("release x\n".to_owned()), ViewEvent::Key(Key::char('s'))]);
    let much = [b"\x1b[200~".to_vec(), vec![b'x'; 3 * LONGEST_PASTE], b"\x1b[201~s".to_vec()].concat();
    let (events, _) = heard(&[&much]);
    assert_eq!(events, [ViewEvent::Key(Key::char('s'))]);
}

/// A piece of a torn sequence is no key, and what comes after it is heard.
#[test]
fn what_is_torn_is_dropped_whole() {
    let key = |c| ViewEvent::Key(Key::char(c));
    assert_eq!(heard(&[b"\x1b[115;", b"s"]).0, [key('s')]);
    assert_eq!(heard(&[b"\x1b]11;rgb:ffff/ff", b"s"]).0, [key('s')]);
    assert_eq!(heard(&[b"\x1b]11;rgb:ffff/ffff/ffff\x1b", b"s"]).0, [key('s')]);
    assert_eq!(heard(&[b"\x1bPxxx", b"s"]).0, [key('s')]);
    assert_eq!(heard(&[&b"\xe6\x9c"[..], b"s"]).0, [key('s')]);
    // Something else begins in the middle of one.
    let ctrl_c = ViewEvent::Key(Key::ctrl('c'));
    assert_eq!(heard(&[b"\x1b[115;\x03s"]).0, [ctrl_c.clone(), key('s')]);
    assert_eq!(heard(&[b"\x1b\x03"]).0, [ViewEvent::Key(Key::plain(Code::Esc)), ctrl_c]);
    assert_eq!(heard(&[b"\x1bPxxx\x1b[Bs"]).0, [ViewEvent::Key(Key::plain(Code::Down)), key('s')]);
    let long = [b"\x1b[".to_vec(), vec![b'1'; 2 * LONGEST]].concat();
    assert_eq!(heard(&[&long, b"s"]).0, [key('s')]);
}

#[test]
fn two_escapes_at_once_are_two_keys() {
    let esc = ViewEvent::Key(Key::plain(Code::Esc));
    assert_eq!(heard(&[b"\x1b\x1b"]).0, [esc.clone(), esc.clone()]);
    assert_eq!(heard(&[b"\x1b\x1b[A"]).0, [esc, ViewEvent::Key(Key::plain(Code::Up))]);
}

/// An Alt-] of a person is followed by typing as by any other key.
#[test]
fn typing_after_a_real_alt_bracket_is_typing() {
    let typed = "xs".chars().map(|c| ViewEvent::Key(Key::char(c)));
    let expected: Vec<ViewEvent> = [ViewEvent::Key(alt(Code::Char(']')))].into_iter().chain(typed).collect();
    assert_eq!(heard(&[b"\x1b]xs"]).0, expected);
    assert_eq!(heard(&[b"\x1b]", b"x", b"s"]).0, expected);
}

#[test]
fn only_what_has_begun_is_waited_for() {
    for (bytes, patience) in [
        (&b"s"[..], None),
        (b"\x1b", Some(ESC_ALONE)),
        (b"\x1b\x1b", Some(ESC_ALONE)),
        (b"\x1b[", Some(TORN)),
        (b"\x1b]11;rgb", Some(TORN)),
        (b"\x1b[200~text", None),
    ] {
        let mut parser = Parser::default();
        parser.take(bytes);
        assert_eq!(parser.patience(), patience, "{bytes:?}");
    }
}

proptest! {
    /// Whatever comes in whatever pieces: no panic, and the same inputs as in one piece.
    #[test]
    fn pieces_change_nothing(
        parts in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..8),
                proptest::sample::select(vec![
                    &b"\x1b[<0;3;4M"[..], b"\x1b[115;1:3u", b"\x1b]11;rgb:ff/ff/ff\x07", b"\x1b[200~a\x1b[201~", b"\x1b[", b"\x1bO",
                ]).prop_map(<[u8]>::to_vec),
            ],
            0..12,
        ),
        cuts in proptest::collection::vec(1..5usize, 1..20),
    ) {
        let bytes = parts.concat();
        let inputs = |pieces: Vec<&[u8]>| {
            let mut parser = Parser::default();
            pieces.into_iter().for_each(|piece| parser.take(piece));
            parser.give_up();
            std::iter::from_fn(move || parser.pop()).collect::<Vec<_>>()
        };
        let whole = inputs(vec![&bytes]);
        let (mut pieces, mut rest, mut sizes) = (Vec::new(), &bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.len().min(*sizes.next().expect("it goes round")));
            pieces.push(piece);
            rest = later;
        }
        prop_assert_eq!(inputs(pieces), whole);
    }
}
