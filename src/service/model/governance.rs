//! Which record may be sent to which model. The one place where it is decided: whatever sends or writes a request takes a
//! [`Cleared`] call, and only this module makes one.

use crate::config::{Egress, ModelConfig};
use crate::record::{Access, LlmEgress, Rights};
use crate::stage::{Ask, Call};
use anyhow::{Context, ensure};
use url::{Host, Url};

/// A call that may be sent to its model.
pub struct Cleared<'a> {
    ask: &'a Ask,
}

impl<'a> Cleared<'a> {
    /// Clears a call, or says why its record may not be sent.
    pub fn check(model: &ModelConfig, ask: &'a Ask) -> Result<Self, String> {
        may_receive(model.egress, &ask.rights)
            .map_err(|what| format!("{what}, and model {} is {}", model.name, model.egress.as_str()))?;
        Ok(Self { ask })
    }

    /// Clears a call for a batch file. A provider keeps such a file until it has answered, and the answers after that: no
    /// agreement about retention covers it.
    pub fn check_for_batch(model: &ModelConfig, ask: &'a Ask) -> Result<Self, String> {
        let egress = if model.egress == Egress::Local { Egress::Local } else { Egress::Public };
        may_receive(egress, &ask.rights)
            .map_err(|what| format!("{what}, and a batch file of model {} is kept by its provider", model.name))?;
        Ok(Self { ask })
    }

    pub fn ask(&self) -> &'a Ask {
        self.ask
    }

    pub fn call(&self) -> &'a Call {
        &self.ask.call
    }

    /// Whether a server's words, which can quote the record, may stand in ledgers and logs.
    pub fn may_quote(&self) -> bool {
        self.ask.rights.access == Access::Open
    }
}

/// The widest egress that the rights of a record allow; none is the answer where nobody said anything. Credentialed
/// records never reach an endpoint that may keep them, whatever their source says.
pub fn widest(rights: &Rights) -> Option<Egress> {
    let said = match rights.llm_egress {
        LlmEgress::Any => Some(Egress::Public),
        LlmEgress::Zdr => Some(Egress::Zdr),
        LlmEgress::Local => Some(Egress::Local),
        LlmEgress::None => None,
    }?;
    match rights.access {
        Access::Open | Access::Registered => Some(said),
        Access::Credentialed => Some(said.min(Egress::Zdr)),
        Access::Unknown => None,
    }
}

fn may_receive(egress: Egress, rights: &Rights) -> Result<(), String> {
    match widest(rights) {
        Some(widest) if egress <= widest => Ok(()),
        Some(widest) => Err(format!(
            "its source may be sent to {} models",
            match widest {
                Egress::Local => "local",
                Egress::Zdr => "local and zdr",
                Egress::Public => "all",
            }
        )),
        None if rights.access == Access::Unknown => {
            Err("nobody said who may hold its source (`access` in its source.toml)".to_owned())
        }
        None => Err("its source may not be sent to any model (`llm_egress` in its source.toml)".to_owned()),
    }
}

/// Checks that an address is what the model's `egress` says.
pub fn check_address(model: &ModelConfig, url: &Url) -> anyhow::Result<()> {
    let host = url.host().context("it names no host")?;
    let own = is_loopback(&host);
    match model.egress {
        Egress::Local => {
            let named = model.local_hosts.iter().any(|known| url.host_str() == Some(known.as_str()));
            ensure!(
                own || named,
                "its egress is local, but {host} is not this machine; name the host under `local_hosts` if it is yours, or give the egress that it has"
            );
        }
        Egress::Zdr | Egress::Public => {
            ensure!(
                own || url.scheme() == "https",
                "it must be https: a request over plain http can be read on its way"
            );
        }
    }
    Ok(())
}

/// An address of this machine.
pub fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn who_may_receive_what() {
        let mut table = String::new();
        for access in [Access::Open, Access::Registered, Access::Credentialed, Access::Unknown] {
            for llm_egress in [LlmEgress::Any, LlmEgress::Zdr, LlmEgress::Local, LlmEgress::None] {
                let rights = Rights { access, llm_egress, ..Rights::unknown() };
                let may = |egress| if may_receive(egress, &rights).is_ok() { "yes" } else { "-" };
                table += &format!(
                    "{:12} {:5} local {:3} zdr {:3} public {}\n",
                    access.as_str(),
                    format!("{llm_egress:?}"),
                    may(Egress::Local),
                    may(Egress::Zdr),
                    may(Egress::Public)
                );
            }
        }
        expect![[r#"
            open         Any   local yes zdr yes public yes
            open         Zdr   local yes zdr yes public -
            open         Local local yes zdr -   public -
            open         None  local -   zdr -   public -
            registered   Any   local yes zdr yes public yes
            registered   Zdr   local yes zdr yes public -
            registered   Local local yes zdr -   public -
            registered   None  local -   zdr -   public -
            credentialed Any   local yes zdr yes public -
            credentialed Zdr   local yes zdr yes public -
            credentialed Local local yes zdr -   public -
            credentialed None  local -   zdr -   public -
            unknown      Any   local -   zdr -   public -
            unknown      Zdr   local -   zdr -   public -
            unknown      Local local -   zdr -   public -
            unknown      None  local -   zdr -   public -
        "#]]
        .assert_eq(&table);
    }
}
