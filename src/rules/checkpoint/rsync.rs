//! What the end of `rsync` means: rsync(1), "EXIT VALUES", version 3.2.7, read 2026-12-01.

use super::Trouble;

/// Whether what it brought goes on to be verified; it proves nothing by itself. A code of `None` is a signal.
pub fn ended(code: Option<i32>, complaint: String) -> Result<(), Trouble> {
    match code {
        // All of it; or all but files that went away meanwhile, which the list will tell.
        Some(0 | 24) => Ok(()),
        code => Err(Trouble::Rsync { code, complaint }),
    }
}

/// It was not able to begin: another protocol, an option that is not known, a shell there that greets whoever comes,
/// or no program. Other ways are left.
pub fn is_of_no_use(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Rsync { code: Some(1 | 2 | 4 | 5 | 126 | 127), .. })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// DATA-02.
    #[rstest]
    #[case::done(Some(0), true, false)]
    #[case::file_io(Some(11), false, false)]
    #[case::stream(Some(12), false, true)]
    #[case::stopped(Some(20), false, true)]
    #[case::partial(Some(23), false, true)]
    #[case::vanished(Some(24), true, false)]
    #[case::time_out(Some(30), false, true)]
    #[case::of_ssh(Some(255), false, true)]
    #[case::not_found(Some(127), false, false)]
    #[case::killed(None, false, true)]
    fn only_what_may_be_whole_is_verified(#[case] code: Option<i32>, #[case] goes_on: bool, #[case] may_pass: bool) {
        match ended(code, "why".to_owned()) {
            Ok(()) => assert!(goes_on),
            Err(trouble) => {
                assert_eq!((goes_on, trouble.may_pass()), (false, may_pass));
                assert_eq!(is_of_no_use(&trouble), code == Some(127));
                assert_eq!(trouble, Trouble::Rsync { code, complaint: "why".to_owned() });
            }
        }
    }
}
