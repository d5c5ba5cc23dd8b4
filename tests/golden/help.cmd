trainyard help
