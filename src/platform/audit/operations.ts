// Every tracked operation, by category: the possible values of `api.operation`. Data only, with the public names.

/** The names in a text, as types and as values. They are separated by spaces or line breaks. */
type Name<Text extends string> = Text extends `${infer First}\n${infer Rest}`
  ? Name<First> | Name<Rest>
  : Text extends `${infer First} ${infer Rest}`
    ? Exclude<First, ''> | Name<Rest>
    : Exclude<Text, ''>;

function names<const Text extends string>(text: Text): readonly Name<Text>[] {
  return text.trim().split(/\s+/) as Name<Text>[];
}

export const operationsByCategory = {
  // An organization itself: its members, keys, workspaces and billing.
  credentials: names(`
    create_api_key delete_api_key create_personal_access_token delete_personal_access_token create_service_key
    delete_service_key create_service_account delete_service_account list_org_personal_access_tokens
    list_org_service_keys
  `),
  roles: names(`create_role update_role delete_role`),
  organizations: names(`
    create_organization create_provisioned_saas_org create_tenant invite_provisioned_org_member
    claim_pending_organization_invite delete_pending_organization_invite
  `),
  organizationMembers: names(`
    invite_user_to_org invite_users_to_org_batch update_org_member delete_org_member delete_org_pending_member
    add_basic_auth_users_to_org update_basic_auth_user
  `),
  singleSignOn: names(`
    create_sso_settings update_sso_settings delete_sso_settings update_login_methods
    update_default_sso_provision_organization get_sso_settings get_sso_settings_current get_login_methods
    send_sso_email_confirmation confirm_sso_user_email login
  `),
  scim: names(`
    create_scim_token update_scim_token delete_scim_token create_scim_user update_scim_user delete_scim_user
    create_scim_group update_scim_group delete_scim_group
  `),
  billing: names(`
    update_organization_info update_business_info update_payment_plan update_payment_method
    create_payment_setup_intent create_payment_checkout_session create_payment_account_link
  `),
  workspaces: names(`
    create_workspace update_workspace delete_workspace add_member_to_workspace add_members_to_workspace_batch
    delete_workspace_member update_workspace_member delete_workspace_pending_member
    claim_pending_workspace_invite delete_pending_workspace_invite update_workspace_secrets unshare_entities
    set_tenant_handle
  `),
  usageLimits: names(`update_ttl_settings update_usage_limit delete_usage_limit`),
  // The resources of an organization, for example traces, datasets, prompts, deployments and exports.
  tracingProjects: names(`update_tracer_session delete_tracer_session delete_tracer_sessions`),
  runs: names(`
    query_run query_runs query_trace query_trace_messages batch_query_trace_messages query_threads
    query_thread_traces read_run read_runs delete_runs get_run_cluster generate_runs_query
  `),
  datasets: names(`
    create_dataset create_csv_dataset update_dataset delete_dataset delete_datasets update_dataset_version
    update_dataset_splits share_dataset unshare_dataset clone_dataset download_dataset generate_dataset
    generate_shared_dataset_query get_dataset_comparison_view stream_dataset_comparison_view read_dataset_delta
    read_shared_delta read_shared_delta_stream create_experiment_via_upload create_playground_experiment
    create_comparative_experiment delete_comparative_experiment
  `),
  examples: names(`
    create_example create_examples update_example update_examples delete_example delete_examples read_example
    read_examples get_example list_examples sync_examples validate_example validate_examples
  `),
  experiments: names(`
    create_experiment_view_override update_experiment_view_override delete_experiment_view_override
    get_experiment_view_override get_experiment_view_overrides evaluate_experiment
  `),
  evaluators: names(`
    create_evaluator update_evaluator delete_evaluator bulk_delete_evaluators execute_custom_code
  `),
  feedback: names(`
    create_feedback_config update_feedback_config delete_feedback_config create_feedback_formula
    update_feedback_formula delete_feedback_formula read_feedback read_feedbacks stream_feedback_delta
  `),
  annotationQueues: names(`
    create_annotation_queue update_annotation_queue delete_annotation_queue delete_annotation_queues
    populate_annotation_queue export_annotation_queue add_annotation_queue_reviewer
    remove_annotation_queue_reviewer add_runs_to_annotation_queue create_annotation_queue_run_status
    update_annotation_queue_run get_annotation_queue_run get_annotation_queue_runs delete_annotation_queue_run
    delete_annotation_queue_runs resolve_annotation_queue_run get_pairwise_queue list_pairwise_queues
    list_pairwise_entries
  `),
  alerts: names(`create_alert_rule update_alert_rule delete_alert_rule test_alert_rule`),
  filterViews: names(`create_filter_view update_filter_view delete_filter_view rename_filter_view`),
  hub: names(`
    create_commit create_directory_commit delete_directory create_hub_environment update_hub_environment
    delete_hub_environment
  `),
  quickActions: names(`
    create_prompt_canvas_quick_action update_prompt_canvas_quick_action delete_prompt_canvas_quick_action
  `),
  promptWebhooks: names(`
    create_prompt_webhook update_prompt_webhook delete_prompt_webhook test_prompt_webhook
  `),
  deployments: names(`create_deployment update_deployment delete_deployment`),
  bulkExports: names(`
    create_bulk_export cancel_bulk_export get_bulk_export get_bulk_export_run get_bulk_export_runs
    get_bulk_export_runs_filtered list_bulk_exports create_bulk_export_destination
    update_bulk_export_destination read_bulk_export_destination list_bulk_export_destinations
  `),
  tags: names(`
    create_tag_key update_tag_key delete_tag_key create_tag_value update_tag_value delete_tag_value
    create_tagging delete_tagging
  `),
  accessPolicies: names(`
    create_access_policy delete_access_policy list_access_policies read_access_policy attach_access_policies
    read_role_access_policies
  `),
  charts: names(`
    create_chart update_chart delete_chart read_chart read_charts read_chart_preview create_chart_section
    update_chart_section delete_chart_section clone_chart_section read_chart_section create_org_chart
    update_org_chart delete_org_chart create_org_chart_section update_org_chart_section delete_org_chart_section
    read_tracing_dashboard
  `),
  modelPrices: names(`create_model_price_map update_model_price_map delete_model_price_map`),
  mcp: names(`
    create_mcp_server update_mcp_server delete_mcp_server register_mcp_server_oauth mcp_proxy
    create_mcp_vendor_settings update_mcp_vendor_settings delete_mcp_vendor_settings invalidate_mcp_tools_cache
    create_tool update_tool delete_tool
  `),
  gatewayPolicies: names(`create_gateway_policy update_gateway_policy delete_gateway_policy`),
  forge: names(`
    create_forge_configuration update_forge_configuration delete_forge_configuration trigger_forge_configuration
  `),
  insights: names(`
    create_insights_job update_insights_job delete_insights_job create_insights_job_config
    update_insights_job_config delete_insights_job_config generate_insights_job_config get_insights_job_runs
  `),
  fleet: names(`
    create_fleet_usage_limit update_fleet_usage_limit delete_fleet_usage_limit create_fleet_webhook
    update_fleet_webhook delete_fleet_webhook test_fleet_webhook
  `),
  sandboxProxyProfiles: names(`
    create_sandbox_proxy_profile update_sandbox_proxy_profile delete_sandbox_proxy_profile
  `),
  playground: names(`create_playground_settings update_playground_settings delete_playground_settings`),
  licensing: names(`
    create_self_hosted_customer update_self_hosted_customer mint_self_hosted_license update_self_hosted_license
  `),
  featureModels: names(`
    upsert_feature_default_model delete_feature_default_model upsert_feature_disabled_model
    delete_feature_disabled_model
  `),
  onboarding: names(`create_onboarding_state update_onboarding_state`),
  surveys: names(`submit_nps_response`),
  // Operations of this product without a public name.
  listeners: names(`create_listener update_listener delete_listener`),
  tracingProjectsOfOurs: names(`create_tracer_session`),
  sandboxTokens: names(`create_sandbox_token delete_sandbox_token`),
  sandboxes: names(`
    create_sandbox update_sandbox delete_sandbox delete_sandboxes start_sandbox stop_sandbox update_sandbox_secrets
    create_sandbox_proxy_token create_sandbox_snapshot delete_sandbox_snapshot
    create_sandbox_service_url delete_sandbox_service_url
  `),
  vault: names(`update_vault_keys`),
};

export type Operation = (typeof operationsByCategory)[keyof typeof operationsByCategory][number];

export const operations: readonly Operation[] = Object.values(operationsByCategory).flat();
