//! The procedures as an interface, used by the client `mariadb` alone. The cases of all databases
//! use Python with its own driver.

use e2e::{database_client::mariadb, servers::MySqlServer};

use crate::{
    cases::On,
    in_a_database::{Database as _, World, example},
    world::on_each_server,
};

async fn the_client_of_the_database_makes_a_fenced_deposit<S: MySqlServer>() {
    let world = World::<On<S>>::new().await;
    let script = std::fs::read_to_string(example("fenced_deposit_mysql.sql")).unwrap();
    let (done, said) = mariadb(&world.database.plain(), &script).await;
    assert!(done, "{said}");
    assert_eq!(world.balance().await, 110);
    for outcome in ["granted", "outcomes\nr\n", "released"] {
        assert!(said.contains(outcome), "{outcome}: {said}");
    }
}

on_each_server!(the_client_of_the_database_makes_a_fenced_deposit);
