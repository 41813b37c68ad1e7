use std::{ffi::OsString, fs, io, path::Path, process::Command};

/// Where Debian keeps the server, and the setting that makes it print its log.
const CLASSES: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";

/// Its configuration file, and the file that tells its number in an ensemble.
const CONFIGURATION: &str = "zoo.cfg";
const DATA: &str = "data";

/// A ZooKeeper server, alone or as a part of an ensemble.
pub(crate) struct ZooKeeper {
    /// Lines of the configuration.
    settings: String,
    /// Options of the Java machine.
    options: Vec<OsString>,
}

impl ZooKeeper {
    pub(crate) fn prepare(arguments: &[OsString], dir: &Path) -> io::Result<Self> {
        let data = dir.join(DATA);
        fs::create_dir(&data)?;
        let mut settings = String::new();
        let mut options = Vec::new();
        for argument in arguments {
            let text = argument.to_string_lossy();
            if let Some(id) = text.strip_prefix("myid=") {
                fs::write(data.join("myid"), id)?;
            } else if text.starts_with('-') {
                options.push(argument.clone());
            } else {
                settings.push_str(&text);
                settings.push('\n');
            }
        }
        Ok(Self { settings, options })
    }

    pub(crate) fn command(&self, port: u16, dir: &Path) -> io::Result<Command> {
        let configuration = dir.join(CONFIGURATION);
        fs::write(&configuration, self.configuration(port, dir))?;
        if !Path::new("/usr/share/java/zookeeper.jar").exists() {
            return Err(io::Error::other(
                "zookeeper is not installed: run scripts/test, which installs what is missing",
            ));
        }
        let mut command = Command::new("java");
        command
            .current_dir(dir)
            // Small and quick to start. There is nothing to save: a killed server keeps its files.
            .args(["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .args([
                "-Dzookeeper.jmx.log4j.disable=true",
                "-Dzookeeper.forceSync=no",
            ])
            .args(&self.options)
            .args(["-cp", CLASSES])
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(configuration);
        Ok(command)
    }

    /// Short ticks, so that sessions may be short, and a high limit, so that sessions may be long.
    ///
    /// A server that follows a server which does not lead notices this after `initLimit` ticks, 10
    /// s. On a busy machine an election may need several such rounds.
    fn configuration(&self, port: u16, dir: &Path) -> String {
        format!(
            "tickTime=100\n\
             initLimit=100\n\
             syncLimit=50\n\
             maxSessionTimeout=600000\n\
             dataDir={}\n\
             clientPort={port}\n\
             clientPortAddress=127.0.0.1\n\
             maxClientCnxns=0\n\
             admin.enableServer=false\n\
             4lw.commands.whitelist=srvr\n\
             {}",
            dir.join(DATA).display(),
            self.settings,
        )
    }

    pub(crate) fn url(port: u16) -> String {
        format!("zookeeper://127.0.0.1:{port}")
    }
}
