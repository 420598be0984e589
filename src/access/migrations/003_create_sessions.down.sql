DROP TABLE access.sessions;
