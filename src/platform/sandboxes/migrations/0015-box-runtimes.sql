-- What runs a box and a machine: an isolated box is never run by something that does not isolate.

    alter table boxes add runtime text check (runtime in ('attached', 'bubblewrap'));
    -- Nothing else ran boxes before.
    update boxes set runtime = 'attached' where applied_version > 0;
    alter table box_machines add runtime text, add holds_storage boolean;

