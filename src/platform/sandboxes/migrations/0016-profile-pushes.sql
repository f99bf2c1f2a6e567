-- What the proxy of a box has acknowledged of a proxy profile, why the latest version of it could not be given to the box, the policy
-- that a proxy has rejected, and machines that nobody waits for any more.

alter table boxes
  add column applied_profile_id uuid,
  add column applied_profile_version integer,
  add column profile_problem jsonb,
  add column profile_tried_version integer,
  add column profile_tried_at timestamptz,
  add column rejected_version integer not null default 0;
update boxes set applied_profile_id = proxy_profile_id, applied_profile_version = profile_version
  where applied_version = policy_version;
alter table box_machines add column lost_at timestamptz;
