//! `steno service`: runs `steno up` at login, through the service manager of the system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use clap::ValueEnum as _;
use steno_capture::discovery::Environment;

use crate::args::{ServiceArgs, ServiceCommand};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, notice};
use crate::recording::check_for_own_sessions;
use crate::settings::{Origin, Settings, text};

/// How long a service manager waits before it starts an `up` again that failed. One that cannot run, for instance because the
/// disk is full, must not keep the machine busy.
const RESTART_SECONDS: u32 = 30;

/// The service manager, and its file.
struct Service {
    file: PathBuf,
    text: String,
    /// The command that ends a running one first, where starting does not. It fails if none runs.
    end_running: Option<Vec<String>>,
    /// The commands that start it now and at every login, in place of one that runs.
    start: Vec<Vec<String>>,
    /// The commands that stop and disable it.
    stop: Vec<Vec<String>>,
    /// The command that succeeds while it runs.
    status_command: Vec<String>,
    /// The commands that make the manager read its files again.
    reload: Vec<Vec<String>>,
    /// The hint if it cannot be started.
    hint: &'static str,
}

pub fn run(args: &ServiceArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let service = service(settings)?;
    match args.command {
        ServiceCommand::Print => service.text.lines().for_each(|line| output.line(line)),
        ServiceCommand::Install => {
            check_for_own_sessions(settings)?;
            install(&service)?;
        }
        ServiceCommand::Status => return Ok(status(&service, output)),
        ServiceCommand::Uninstall => uninstall(&service)?,
    }
    Ok(Exit::Done)
}

/// Prints whether the service is installed and running; the exit code is 1 if it is not running.
fn status(service: &Service, output: &mut Output) -> Exit {
    let is_installed = service.file.exists();
    let is_running = is_installed && run_quietly(&service.status_command);
    output.line(&format!("installed  {}  {}", yes_or_no(is_installed), service.file.display()));
    output.line(&format!("running    {}", yes_or_no(is_running)));
    if !is_running {
        notice("`steno service install` installs and starts it");
    }
    if is_running { Exit::Done } else { Exit::CheckFailed }
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no " }
}

/// Writes the service file and starts the service. If it does not run then, it is removed again.
fn install(service: &Service) -> Result<(), Failure> {
    let failed = |error| Failure::could_not(format!("cannot write `{}`: {error}", service.file.display()));
    let before = match fs::read(&service.file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let dirs: Vec<&Path> = service.file.ancestors().skip(1).take_while(|dir| !dir.exists()).collect();
    if let Some(dir) = service.file.parent() {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    fs::write(&service.file, &service.text).map_err(failed)?;
    service.end_running.as_deref().map(run_quietly);
    if let Err(failure) = run_all(&service.start) {
        let left = undo(service, before.as_deref(), &dirs);
        let message = format!("{}; `steno up` was not installed; {left}", failure.message);
        return Err(Failure::could_not(message).with_hint(service.hint));
    }
    notice(&format!("wrote {}", service.file.display()));
    notice("`steno up` runs now, and at every login");
    Ok(())
}

/// Undoes the installation as far as possible; describes the state of the file.
fn undo(service: &Service, before: Option<&[u8]>, dirs: &[&Path]) -> String {
    let file = service.file.display();
    let undone = if let Some(text) = before {
        fs::write(&service.file, text)
    } else {
        for command in &service.stop {
            run_quietly(command);
        }
        fs::remove_file(&service.file)
    };
    for command in &service.reload {
        run_quietly(command);
    }
    for dir in dirs {
        // A directory that is no longer empty is kept.
        fs::remove_dir(dir).ok();
    }
    match (undone, before) {
        (Ok(()), None) => format!("`{file}` was removed again"),
        (Ok(()), Some(_)) => format!("`{file}` is unchanged"),
        (Err(error), _) => format!("`{file}` could not be cleaned up: {error}"),
    }
}

/// Runs a command without its output; returns whether it succeeded.
fn run_quietly(command: &[String]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn uninstall(service: &Service) -> Result<(), Failure> {
    if !service.file.exists() {
        return Err(Failure::nothing(format!(
            "the service is not installed: there is no `{}`",
            service.file.display()
        )));
    }
    run_all(&service.stop)?;
    let removed = fs::remove_file(&service.file);
    removed.map_err(|error| {
        Failure::could_not(format!("cannot delete `{}`: {error}", service.file.display()))
    })?;
    notice("`steno up` is no longer started at login; the store is kept");
    Ok(())
}

fn run_all(commands: &[Vec<String>]) -> Result<(), Failure> {
    for command in commands {
        let words = command.join(" ");
        let Some((program, arguments)) = command.split_first() else { continue };
        let hint = format!("run it by hand: {words}");
        let status = Command::new(program).args(arguments).status().map_err(|error| {
            Failure::could_not(format!("cannot run `{program}`: {error}")).with_hint(hint.clone())
        })?;
        if !status.success() {
            return Err(Failure::could_not(format!("`{words}` failed ({status})")).with_hint(hint));
        }
    }
    Ok(())
}

fn service(settings: &Settings) -> Result<Service, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = home.ok_or_else(|| Failure::usage("there is no home directory for the service file"))?;
    let (command, variables) = (command(settings)?, variables(settings)?);
    Ok(if cfg!(target_os = "macos") {
        launchd(&home, &command, &variables)
    } else {
        systemd(&home, &command, &variables)
    })
}

/// Returns the command to run, with the flags given here. Paths are absolute: a service has another working
/// directory.
fn command(settings: &Settings) -> Result<Vec<String>, Failure> {
    let path = |what: &str, path: &Path| text(what, std::path::absolute(path)?.into_os_string());
    let mut command = vec![path("the program", &std::env::current_exe()?)?];
    command.extend(["--store".to_owned(), path("--store", &settings.store.value)?]);
    if let (Some(file), true) = (&settings.file, settings.file_named) {
        command.extend(["--config".to_owned(), path("--config", file)?]);
    }
    if let (Origin::Flag(flag), Some(word)) =
        (&settings.color.origin, settings.color.value.to_possible_value())
    {
        command.extend([(*flag).to_owned(), word.get_name().to_owned()]);
    }
    command.push("up".to_owned());
    Ok(command)
}

/// Returns the variables that settings and agents' homes depend on: a service manager does not have them.
fn variables(settings: &Settings) -> Result<BTreeMap<String, String>, Failure> {
    // Flags of the command replace these, with absolute paths.
    const IN_COMMAND: [&str; 2] = ["STENO_HOME", "STENO_CONFIG"];
    let mut variables = settings.variables.clone();
    for name in Environment::VARIABLES.into_iter().chain(["HOME"]) {
        variables.extend(std::env::var_os(name).map(|value| (name.to_owned(), value)));
    }
    variables.retain(|name, value| !value.is_empty() && !IN_COMMAND.contains(&&**name));
    variables.into_iter().map(|(name, value)| Ok((name.clone(), text(&name, value)?))).collect()
}

fn words(command: &str) -> Vec<String> {
    command.split(' ').map(str::to_owned).collect()
}

fn systemd(home: &Path, command: &[String], variables: &BTreeMap<String, String>) -> Service {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let dir = config.unwrap_or_else(|| home.join(".config"));
    let mut text = String::from(
        "[Unit]\nDescription=Stenograph: archives what AI agents do\n\n[Service]\nType=simple\n",
    );
    for (name, value) in variables {
        text.push_str(&format!("Environment={}\n", systemd_quoted(&format!("{name}={value}"))));
    }
    let command: Vec<_> = command.iter().map(|word| systemd_argument(word)).collect();
    // Wrong settings stay wrong.
    let refused = Exit::Usage.code();
    text.push_str(&format!(
        "ExecStart={}\nRestart=on-failure\nRestartSec={RESTART_SECONDS}\nRestartPreventExitStatus={refused}\nNice=10\n\n[Install]\nWantedBy=default.target\n",
        command.join(" "),
    ));
    Service {
        file: dir.join("systemd/user/steno.service"),
        text,
        end_running: None,
        start: vec![
            words("systemctl --user daemon-reload"),
            words("systemctl --user enable steno.service"),
            // After an upgrade, the running one is the old program.
            words("systemctl --user restart steno.service"),
            // `restart` also succeeds if the process ends at once.
            words("systemctl --user is-active --quiet steno.service"),
        ],
        stop: vec![words("systemctl --user disable --now steno.service")],
        status_command: words("systemctl --user is-active --quiet steno.service"),
        reload: vec![words("systemctl --user daemon-reload")],
        hint: "`systemctl --user` needs a login session of this user; containers, `su` and `sudo` have none; \
            `steno service print` prints the file for another service manager",
    }
}

/// Quotes a word of a command, where `$` is special too.
fn systemd_argument(word: &str) -> String {
    systemd_quoted(&word.replace('$', "$$"))
}

/// Quotes a word as systemd reads it everywhere.
fn systemd_quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

fn launchd(home: &Path, command: &[String], variables: &BTreeMap<String, String>) -> Service {
    let file = home.join("Library/LaunchAgents/steno.up.plist");
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<dict>\n<key>Label</key><string>steno.up</string>\n<key>RunAtLoad</key><true/>\n<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n",
    );
    text.push_str(&format!("<key>ThrottleInterval</key><integer>{RESTART_SECONDS}</integer>\n"));
    text.push_str("<key>ProgramArguments</key><array>");
    for word in command {
        text.push_str(&format!("<string>{}</string>", xml_quoted(word)));
    }
    text.push_str("</array>\n<key>EnvironmentVariables</key><dict>");
    for (name, value) in variables {
        text.push_str(&format!("<key>{name}</key><string>{}</string>", xml_quoted(value)));
    }
    let log = xml_quoted(&home.join("Library/Logs/steno.up.log").to_string_lossy());
    text.push_str(&format!(
        "</dict>\n<key>StandardErrorPath</key><string>{log}</string>\n</dict>\n</plist>\n"
    ));
    let path = file.to_string_lossy().into_owned();
    let launchctl = |what: &str| vec!["launchctl".to_owned(), what.to_owned(), "-w".to_owned(), path.clone()];
    Service {
        end_running: Some(launchctl("unload")),
        start: vec![launchctl("load")],
        stop: vec![launchctl("unload")],
        // It lists services that have ended too; only a running one has a process.
        status_command: ["sh", "-c", "launchctl list steno.up | grep -q '\"PID\"'"]
            .map(str::to_owned)
            .to_vec(),
        reload: Vec::new(),
        hint: "`launchctl` needs a login session of this user; `steno service print` prints the file for another service manager",
        file,
        text,
    }
}

fn xml_quoted(word: &str) -> String {
    word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn systemd_unit_quotes_special_characters() {
        let variables = BTreeMap::from([("CODEX_HOME".to_owned(), "/a b/100%\n$1".to_owned())]);
        let command = command(&["/opt/my \"bin\"/steno", "--store", "/s$1", "up"]);
        let service = systemd(Path::new("/h"), &command, &variables);
        assert!(service.file.ends_with("systemd/user/steno.service"));
        let start = "ExecStart=\"/opt/my \\\"bin\\\"/steno\" \"--store\" \"/s$$1\" \"up\"\n";
        assert!(service.text.contains(start), "{}", service.text);
        assert!(service.text.contains("Environment=\"CODEX_HOME=/a b/100%%\\n$1\"\n"), "{}", service.text);
        let restart = "\nRestart=on-failure\nRestartSec=30\nRestartPreventExitStatus=2\n";
        assert!(service.text.contains(restart), "{}", service.text);
    }

    #[test]
    fn property_list_has_command_and_variables() {
        let variables = BTreeMap::from([("STENO_EXCLUDE_PATHS".to_owned(), "/x&y".to_owned())]);
        let command = command(&["/opt/a&b/steno", "--config", "/s<1>", "up"]);
        let service = launchd(Path::new("/h"), &command, &variables);
        for part in [
            "<string>/opt/a&amp;b/steno</string><string>--config</string><string>/s&lt;1&gt;</string>",
            "<key>STENO_EXCLUDE_PATHS</key><string>/x&amp;y</string>",
            "\n<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n",
            "\n<key>ThrottleInterval</key><integer>30</integer>\n",
            "<key>StandardErrorPath</key><string>/h/Library/Logs/steno.up.log</string>",
        ] {
            assert!(service.text.contains(part), "{}", service.text);
        }
    }
}
