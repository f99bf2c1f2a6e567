-- Where clients reach the boxes of a machine.

    alter table box_machines add column gateway_url text;
