DROP TABLE saga.service_circuits;
