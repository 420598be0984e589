DROP TABLE access.known_users;
