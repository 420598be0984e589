DROP TABLE platform.data_keys;
