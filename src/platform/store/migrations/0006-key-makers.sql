-- Who created a key: the key, and the user of a personal token. Both stay when the creator is deleted, so they refer to nothing.

    alter table api_keys add column created_by_key_id uuid, add column created_by_user_id uuid;
  