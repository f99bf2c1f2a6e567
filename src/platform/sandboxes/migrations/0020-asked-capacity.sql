-- Whether the creator of a box relies on its capacity: a machine that holds no storage must not run such a box.

    alter table boxes add asks_capacity boolean not null default false;
