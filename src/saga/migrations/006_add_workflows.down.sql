DROP TABLE saga.workflows;
DROP TABLE saga.workflow_definitions;
