//! A home, three members that it names, and an operator.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::server::{Real, Server};

use crate::OPERATOR;
use crate::flotilla::{ENTRY, PLACE, SHIP, UID};
use crate::operator::WHY;
use crate::role::Role;
use crate::ship::Ship;

/// How many members there are.
const MEMBERS: usize = 3;

/// Where tests play.
pub(crate) struct Stage {
    home: Cluster,
    ships: Vec<Ship>,
}

impl Stage {
    pub(crate) fn set(kubectl: &Path, server: &dyn Server) -> Result<Self> {
        let home = Cluster::new(kubectl, server.kubeconfig())?;
        let ships: Vec<Ship> = if server.name() == "real" {
            let members = Real::members().into_iter().enumerate();
            members
                .map(|(index, real)| Ship::real(kubectl, &name(index), real))
                .collect::<Result<_>>()?
        } else {
            (0..MEMBERS)
                .map(|index| Ship::embedded(kubectl, &name(index)))
                .collect::<Result<_>>()?
        };
        let found = ships.len();
        ensure!(
            found == MEMBERS,
            "{found} members and not {MEMBERS}: is SLIPWAY_REAL_MEMBERS set?"
        );
        Ok(Self { home, ships })
    }

    pub(crate) fn ships(&self) -> &[Ship] {
        &self.ships
    }

    /// Names all members as they are now, with an object in each that wants nothing yet.
    pub(crate) fn clear(&self) -> Result<()> {
        for ship in &self.ships {
            ship.named(ship.clear())?;
            self.name(ship, &ship.admin()?)?;
        }
        Ok(())
    }

    /// Names a member, with these credentials and the uid that it has.
    pub(crate) fn name(&self, ship: &Ship, credentials: &Value) -> Result<()> {
        self.name_as(ship, credentials, &ship.uid()?)
    }

    /// Names a member, with these credentials and this uid.
    pub(crate) fn name_as(&self, ship: &Ship, credentials: &Value, uid: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": ship.name, "namespace": PLACE},
            "stringData": {ENTRY: credentials.to_string()},
        });
        self.home.apply(&secret.to_string())?;
        // The version of this object is what says that the Secret has changed.
        let turned = jiff::Timestamp::now().to_string();
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": ship.name,
                "namespace": PLACE,
                "labels": {SHIP: ""},
                "annotations": {UID: uid},
            },
            "data": {"turned": turned},
        });
        self.home.apply(&object.to_string())?;
        Ok(())
    }

    /// Somebody says that the cluster of this uid is meant.
    pub(crate) fn confirm(&self, ship: &Ship, uid: &str) -> Result<()> {
        let uid = format!("{UID}={uid}");
        let arguments = ["annotate", "--overwrite", "configmap", "-n", PLACE];
        let arguments = [&arguments[..], &[ship.name.as_str(), uid.as_str()]].concat();
        self.home.kubectl(&arguments)?;
        Ok(())
    }

    /// Runs a test beside an operator. If it fails, it is told what the operator says.
    pub(crate) fn operated(&self, test: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut operator = Role::start(&[OPERATOR.to_owned()])?;
        self.show_home(&mut operator)?;
        test().map_err(|error| match asked(&mut operator) {
            Ok(said) => error.context(format!("the operator says {}", said[WHY])),
            Err(silence) => error.context(format!("{silence:#}")),
        })
    }

    /// Tells an operator where home is.
    pub(crate) fn show_home(&self, operator: &mut Role) -> Result<()> {
        let home = std::fs::read_to_string(&self.home.kubeconfig)?;
        operator.tell(&json!(home))
    }

    /// Everything that people without a right to Secrets can read at home and in members, where operators write.
    pub(crate) fn readable(&self) -> Result<String> {
        let kinds = "events,configmaps,leases.coordination.k8s.io";
        let arguments = ["get", kinds, "-A", "-o", "json"];
        let mut all = self.home.kubectl(&arguments)?;
        for ship in &self.ships {
            all += &ship.kubectl(&arguments)?;
        }
        Ok(all)
    }

    /// Every member wants this and gets it.
    pub(crate) fn all_get(&self, what: &str, within: Duration) -> Result<()> {
        for ship in &self.ships {
            ship.wants(what)?;
        }
        for ship in &self.ships {
            ship.gets(what, within)?;
        }
        Ok(())
    }
}

/// What the operator says of itself.
pub(crate) fn asked(operator: &mut Role) -> Result<Value> {
    operator.tell(&json!(WHY))?;
    operator.answer(Duration::from_secs(5))
}

fn name(index: usize) -> String {
    format!("member-{index}")
}
