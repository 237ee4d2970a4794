fn main() -> std::process::ExitCode {
    rentop::cli::run()
}
