use rstest::rstest;

use super::*;

const LOOK_TEXT: &str = "@look\n@end\n";

/// What is heard of an output: looks told, and the rest.
async fn heard(output: &[u8]) -> (usize, Heard) {
    let (mut heard, mut told) = (Heard::default(), 0);
    hear(output, &mut heard, |_| told += 1).await;
    (told, heard)
}

#[rstest]
#[case::nothing("", 0, false)]
#[case::one_look(LOOK_TEXT, 1, false)]
#[case::an_end("@look\n@end\n@look\n@end\r\n@ended\n", 2, true)]
#[case::only_an_end("@ended", 0, true)]
#[case::half_a_look("@look\n@end\n@look\n@gpu", 1, false)]
#[case::a_greeting("Welcome!\n\x07\n@look\n@end\n", 1, false)]
#[case::nul_bytes("@look\n\0\0\0\n@end\n", 1, false)]
#[case::a_name_like_the_end("@ended by\n", 0, false)]
#[tokio::test]
async fn looks_are_heard_whatever_stands_around_them(
    #[case] output: &str,
    #[case] looks: usize,
    #[case] came_to_its_end: bool,
) {
    let (told, heard) = heard(output.as_bytes()).await;
    assert_eq!((told, heard.came_to_its_end, heard.verdict), (looks, came_to_its_end, None));
}

#[tokio::test]
async fn bytes_that_are_no_text_end_nothing() {
    let (told, heard) = heard(b"\xff\xfe\n@look\n\xc3\x28\n@end\n").await;
    assert_eq!((told, heard.verdict), (1, None));
}

#[rstest]
#[case::a_line_without_an_end("x".repeat(LOOK + 1))]
#[case::many_lines("@look\n".to_owned() + &"x\n".repeat(LOOK / 2))]
#[case::nul_bytes_for_ever("\0".repeat(LOOK + 1))]
#[case::more_looks_than_time(LOOK_TEXT.repeat(FLOOD as usize + 1))]
#[tokio::test]
async fn what_never_ends_is_ended(#[case] output: String) {
    let (told, heard) = heard((output + LOOK_TEXT).as_bytes()).await;
    assert_eq!(heard.verdict, Some(Trouble::Garbled));
    assert!(told <= MANY as usize);
}

/// As after the program was stopped for an hour: the stream goes on.
#[tokio::test]
async fn looks_that_were_held_up_are_passed_over() {
    let (told, heard) = heard(LOOK_TEXT.repeat(3600).as_bytes()).await;
    assert_eq!((told, heard.verdict), (MANY as usize, None));
}

#[tokio::test]
async fn a_long_line_is_cut_and_the_next_one_is_whole() {
    let text = format!("{}\nnext\nlast", "é".repeat(LINE));
    let mut output = BufReader::new(text.as_bytes());
    let mut line = Vec::new();
    assert_eq!(next_line(&mut output, &mut line).await.unwrap(), Some(2 * LINE + 1));
    assert_eq!(line.len(), LINE);
    assert_eq!(next_line(&mut output, &mut line).await.unwrap(), Some(5));
    assert_eq!(line, b"next");
    assert_eq!(next_line(&mut output, &mut line).await.unwrap(), Some(4));
    assert_eq!(next_line(&mut output, &mut line).await.unwrap(), None);
}

#[tokio::test]
async fn only_the_last_of_what_is_said_aside_is_kept() {
    let mut kept = Vec::new();
    let text = "a word\n".repeat(100_000) + "Permission denied (publickey).";
    keep_last(text.as_bytes(), &mut kept).await;
    assert!(kept.len() <= 2 * ASIDE && kept.ends_with(b"(publickey)."), "{}", kept.len());
}

#[rstest]
#[case::no_program("/", "/nowhere/ssh", Trouble::NoProgram)]
#[case::no_folder("/nowhere", "true", Trouble::Said("No such file or directory (os error 2)".to_owned()))]
#[case::ends_at_once("/", "true", Trouble::Ended)]
#[tokio::test]
#[cfg(unix)]
async fn what_cannot_be_started_says_why(#[case] folder: &str, #[case] program: &str, #[case] expected: Trouble) {
    let mut command = Command::new(program);
    command.current_dir(folder).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    assert_eq!(listen(command, "alias", |_| ()).await, expected);
}
