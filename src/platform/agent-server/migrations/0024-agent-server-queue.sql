-- The queue of an agent server: runs that are executed apart from others, why a run was lost, and what claims look at.

    -- Its worker was lost, or did not respond, while it ran there with others: it is executed alone from now on.
    alter table agent_runs add column is_alone boolean not null default false;
    -- Why it was lost the last time, for the error that ends it.
    alter table agent_runs add column loss text;
    -- The runs that precede all others of their threads.
    create index agent_runs_begun_idx on agent_runs (thread_id) where status = 'pending' and attempt > 0;
