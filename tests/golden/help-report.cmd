trainyard help report
