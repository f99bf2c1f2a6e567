-- The workspace that a key works in when a request names none. When that is deleted, the key has none, never another one.

alter table api_keys
  add column home_workspace_id uuid,
  add foreign key (organization_id, home_workspace_id) references workspaces (organization_id, id)
    on delete set null (home_workspace_id);
create index on api_keys (home_workspace_id) where home_workspace_id is not null;
